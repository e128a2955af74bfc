# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Walks from files to their dependencies (or, mirrored, to the files that depend on them).

The rules of time: a write depends on what its process read from before it ended, a read on the
writes that began before it ended, unless what they wrote was gone by then (uses.pyx): a path is as
many nodes as it had contents. Nothing later than the walk's own limit counts: what a writer did after
the data on the way were read does not count. What waits with the greatest limit is visited first, so that
each use is met with the greatest limit that it can have. With lists in order of time what counts is
always the beginning of a list: a walk keeps for each path and process how much of its list is done,
and looks at each use once: the cost is the number of uses reached. The items stay, and are the proof
of everything found.

The graph is in a file that may be damaged: each row number is compared with its table when it is
taken out of a column. A wrong one becomes 0 and ends the walk.
"""
from libc.string cimport memset
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

from libetrace.core.memory cimport buffer_add, buffer_free, buffer_reserve
from libetrace.core.types cimport INT64_MAX
from libetrace.depend.uses cimport content_of, execution_of, n_ends, path_of, process_of


# The next array of `n` elements in a block; without a block only its size counts.
cdef void *carve(Walk *walk, size_t n, size_t size) noexcept nogil:
    cdef size_t at = walk.n_bytes
    walk.n_bytes += (n * size + 63) & ~<size_t>63
    return NULL if walk.arrays == NULL else <char *>walk.arrays + at


cdef void place_arrays(Walk *walk) noexcept nogil:
    cdef size_t n_paths = <size_t>walk.edges.n_paths + 1
    walk.n_bytes = 0
    walk.tree_at = <u64 *>carve(walk, n_paths, sizeof(u64))
    walk.n_done = <u32 *>carve(walk, n_paths, sizeof(u32))
    walk.via_use = <u32 *>carve(walk, n_paths, sizeof(u32))
    walk.via_item = <u32 *>carve(walk, n_paths, sizeof(u32))
    walk.is_listed = <u8 *>carve(walk, n_paths, sizeof(u8))
    walk.is_root = <u8 *>carve(walk, n_paths, sizeof(u8))
    walk.processes = <Done *>carve(walk, <size_t>walk.edges.n_processes + 1, sizeof(Done))


# The kernel's zeros: calloc(3) writes its own when it takes memory that was freed before.
cdef int walk_init(Walk *walk, const Edges *edges) noexcept nogil:
    cdef void *block
    memset(walk, 0, sizeof(walk[0]))
    walk.edges = edges
    place_arrays(walk)
    block = mmap(NULL, walk.n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if block == MAP_FAILED:
        return OUT_OF_MEMORY
    walk.arrays = block
    place_arrays(walk)
    return 0


cdef void walk_free(Walk *walk) noexcept nogil:
    if walk.arrays != NULL:
        munmap(walk.arrays, walk.n_bytes)
    buffer_free(&walk.trees)
    buffer_free(&walk.items)
    buffer_free(&walk.waiting)
    buffer_free(&walk.found)
    buffer_free(&walk.entered)
    buffer_free(&walk.left)


# ---- rows out of columns ----


# A row number, or 0 and damage.
cdef inline u32 checked(Walk *walk, u32 row, u64 n) noexcept nogil:
    if row < n:
        return row
    walk.is_damaged = True
    return 0


cdef inline bint is_span(Walk *walk, const u64 *start, u32 row, u64 n) noexcept nogil:
    if start[row] <= start[row + 1] <= n:
        return True
    walk.is_damaged = True
    return False


cdef inline u32 use_at(Walk *walk, const UseLists *lists, u64 place) noexcept nogil:
    return checked(walk, lists.use[place], walk.edges.uses.n)


cdef inline u32 path_at(Walk *walk, u32 use) noexcept nogil:
    return checked(walk, path_of(&walk.edges.uses, use), walk.edges.n_paths)


cdef inline u32 execution_at(Walk *walk, u32 use) noexcept nogil:
    return checked(walk, execution_of(&walk.edges.uses, use), walk.edges.n_executions)


# The execution of the use was checked.
cdef inline u32 process_at(Walk *walk, u32 use) noexcept nogil:
    return checked(walk, process_of(&walk.edges.uses, use), walk.edges.n_processes)


# Who comes with a limit of at least its key may take a use; it passes its own limit on.
cdef inline s64 key_of(const Walk *walk, u32 use) noexcept nogil:
    return -walk.edges.uses.end[use] if walk.edges.is_mirrored else walk.edges.uses.begin[use]


# Whoever passes a use goes on with the smaller of its limit and his own.
cdef inline s64 limit_of(const Walk *walk, u32 use, s64 limit) noexcept nogil:
    cdef s64 own
    if not walk.rules.is_ordered:
        return INT64_MAX
    own = -walk.edges.uses.begin[use] if walk.edges.is_mirrored else walk.edges.uses.end[use]
    return own if walk.rules.is_nearest else min(own, limit)


# ---- uses of a path ----


# Whether the lists of a path can be read.
cdef inline bint is_path(Walk *walk, u32 path) noexcept nogil:
    cdef const Edges *edges = walk.edges
    return is_span(walk, edges.by_path.start, path, edges.by_path.n) and is_span(
        walk, edges.ends.start, path, edges.ends.n)


# The place of the next use of a path that counts for a content, the end of its list without one;
# `status` is not 0 when there is no memory.
cdef u64 next_place(Walk *walk, u32 path, u32 content, int *status) noexcept nogil:
    cdef const UseLists *lists = &walk.edges.by_path
    status[0] = 0
    if n_ends(&walk.edges.ends, path) == 0:
        return lists.start[path] + walk.n_done[path]
    if walk.tree_at[path] == 0:
        status[0] = tree_build(walk, path)
        if status[0] < 0:
            return lists.start[path + 1]
    return lists.start[path] + tree_find(walk, path, content)


# Uses that were taken are not found again.
cdef inline void take(Walk *walk, u32 path, u64 place) noexcept nogil:
    cdef u32 number = <u32>(place - walk.edges.by_path.start[path])
    if n_ends(&walk.edges.ends, path) == 0:
        walk.n_done[path] = number + 1
    else:
        tree_take(walk, path, number)


# ---- what waits ----


# Whether item `a` is visited before `b`: the greater limit first, then the one that came first.
cdef inline bint is_sooner(const Walk *walk, u32 a, u32 b) noexcept nogil:
    cdef const Item *items = <const Item *>walk.items.data
    if not walk.rules.is_nearest and items[a].limit != items[b].limit:
        return items[a].limit > items[b].limit
    return a < b


cdef int push(Walk *walk, u32 number) noexcept nogil:
    cdef size_t at = walk.waiting.len / sizeof(u32)
    cdef u32 *heap
    if buffer_add(&walk.waiting, &number, sizeof(number)) < 0:
        return OUT_OF_MEMORY
    heap = <u32 *>walk.waiting.data
    while at and is_sooner(walk, number, heap[(at - 1) / 2]):
        heap[at] = heap[(at - 1) / 2]
        at = (at - 1) / 2
    heap[at] = number
    return 0


# The item that is next; there is one.
cdef u32 pop(Walk *walk) noexcept nogil:
    cdef u32 *heap = <u32 *>walk.waiting.data
    cdef size_t n = walk.waiting.len / sizeof(u32) - 1
    cdef u32 first = heap[0]
    cdef u32 last = heap[n]
    cdef size_t at = 0
    cdef size_t child = 1
    walk.waiting.len = n * sizeof(u32)
    while child < n:
        child += child + 1 < n and is_sooner(walk, heap[child + 1], heap[child])
        if not is_sooner(walk, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = last
    return first


cdef inline int add_item(Walk *walk, u32 id, u32 content, s64 limit, u32 parent, bint is_process,
                         u8 kind, u64 edge) noexcept nogil:
    cdef Item item
    item.content = content
    item.limit = limit
    item.id = id
    item.parent = parent
    item.edge = edge
    item.is_process = is_process
    item.kind = kind
    if walk.items.len / sizeof(Item) >= NO_ITEM or buffer_add(
            &walk.items, &item, sizeof(item)) < 0:
        return OUT_OF_MEMORY
    return push(walk, <u32>(walk.items.len / sizeof(Item) - 1))


# A path waits only when something of its list is new within the limit.
cdef int enter_path(Walk *walk, u32 path, u32 content, s64 limit, u32 parent,
                    u32 use) noexcept nogil:
    cdef int status
    cdef u64 place = next_place(walk, path, content, &status)
    if status < 0 or place == walk.edges.by_path.start[path + 1]:
        return status
    if key_of(walk, use_at(walk, &walk.edges.by_path, place)) > limit:
        return 0
    return add_item(walk, path, content, limit, parent, False, BY_USE, use)


cdef inline bint has_more(Walk *walk, u32 process, s64 limit) noexcept nogil:
    cdef const Edges *edges = walk.edges
    cdef const Done *done = walk.processes + process
    cdef u64 place = edges.by_process.start[process] + done.n_uses
    if place < edges.by_process.start[process + 1]:
        if key_of(walk, use_at(walk, &edges.by_process, place)) <= limit:
            return True
    if done.has_pipes and done.pipe_limit >= limit:
        return False
    return edges.pipe_start[process] != edges.pipe_start[process + 1]


cdef int enter_process(Walk *walk, u32 process, s64 limit, u32 parent, u8 kind,
                       u64 edge) noexcept nogil:
    cdef const Edges *edges = walk.edges
    if not is_span(walk, edges.by_process.start, process, edges.by_process.n) or not is_span(
            walk, edges.pipe_start, process, edges.n_pipes):
        return DAMAGED
    if not has_more(walk, process, limit):
        return 0
    return add_item(walk, process, 0, limit, parent, True, kind, edge)


# ---- visits ----


cdef inline bint is_excluded(const Walk *walk, u32 execution) noexcept nogil:
    return walk.rules.excluded != NULL and walk.rules.excluded[execution]


# A root may be left even when it is a module.
cdef inline bint is_stop(const Walk *walk, u32 path) noexcept nogil:
    if walk.rules.stops != NULL and walk.rules.stops[path]:
        return True
    if walk.rules.modules == NULL or not walk.rules.modules[path]:
        return False
    return not walk.is_root[path]


cdef int enter_user(Walk *walk, u32 number, u32 use, s64 limit) noexcept nogil:
    if is_excluded(walk, execution_at(walk, use)) or walk.is_damaged:
        return 0
    if buffer_add(&walk.entered, &use, sizeof(use)) < 0:
        return OUT_OF_MEMORY
    return enter_process(walk, process_at(walk, use), limit_of(walk, use, limit), number, BY_USE,
                         use)


# Who used the path in time.
cdef int visit_path(Walk *walk, u32 number, Item item) noexcept nogil:
    cdef u64 end = walk.edges.by_path.start[item.id + 1]
    cdef int status
    cdef u64 place
    cdef u32 use
    while True:
        place = next_place(walk, item.id, item.content, &status)
        if status < 0 or place >= end:
            return status
        use = use_at(walk, &walk.edges.by_path, place)
        if key_of(walk, use) > item.limit or walk.is_damaged:
            return 0
        take(walk, item.id, place)
        status = enter_user(walk, number, use, item.limit)
        if status < 0:
            return status


# Without order a path is one content.
cdef inline u32 content_of_use(const Walk *walk, u32 use, u32 path) noexcept nogil:
    if not walk.rules.is_ordered:
        return 0
    return content_of(&walk.edges.ends, &walk.edges.uses, use, path, walk.edges.is_mirrored,
                      walk.edges.is_mirrored)


# Mirrored, a path that was written counts as made of something only by its last content, as it does
# when it is asked for.
cdef inline bint is_last(const Walk *walk, u32 path, u32 content) noexcept nogil:
    if not walk.edges.is_mirrored or not walk.rules.is_ordered:
        return True
    return content + walk.edges.ends.last[path] <= n_ends(&walk.edges.ends, path)


cdef int list_path(Walk *walk, u32 path, u32 number, u32 use) noexcept nogil:
    if walk.is_listed[path]:
        return 0
    walk.is_listed[path] = True
    walk.via_use[path] = use
    walk.via_item[path] = number
    return buffer_add(&walk.found, &path, sizeof(path))


cdef int leave_process(Walk *walk, u32 number, u32 use, s64 limit) noexcept nogil:
    cdef u32 path = path_at(walk, use)
    cdef u32 content
    if not is_path(walk, path):
        return DAMAGED
    content = content_of_use(walk, use, path)
    if buffer_add(&walk.left, &use, sizeof(use)) < 0:
        return OUT_OF_MEMORY
    if is_last(walk, path, content) and list_path(walk, path, number, use) < 0:
        return OUT_OF_MEMORY
    if is_stop(walk, path):
        return 0
    return enter_path(walk, path, content, limit_of(walk, use, limit), number, use)


cdef int visit_files(Walk *walk, u32 number, const Item *item) noexcept nogil:
    cdef const UseLists *lists = &walk.edges.by_process
    cdef Done *done = walk.processes + item.id
    cdef int status
    cdef u32 use
    while lists.start[item.id] + done.n_uses < lists.start[item.id + 1]:
        use = use_at(walk, lists, lists.start[item.id] + done.n_uses)
        if key_of(walk, use) > item.limit or walk.is_damaged:
            return 0
        done.n_uses += 1
        if is_excluded(walk, execution_at(walk, use)):
            continue
        status = leave_process(walk, number, use, item.limit)
        if status < 0:
            return status
    return 0


# Limit beyond a fork: of what the parent had in memory then.
cdef inline s64 fork_limit(const Walk *walk, s64 time, s64 limit) noexcept nogil:
    if not walk.rules.is_ordered:
        return INT64_MAX
    return min(limit, -time if walk.edges.is_mirrored else time)


cdef int pass_pipe(Walk *walk, u32 number, const Item *item, u64 pipe) noexcept nogil:
    cdef const Edges *edges = walk.edges
    cdef u32 own = checked(walk, edges.pipe_own[pipe], edges.n_executions)
    cdef u32 other = checked(walk, edges.pipe_other[pipe], edges.n_executions)
    cdef u32 process = checked(walk, edges.pipe_process[pipe], edges.n_processes)
    cdef s64 time = edges.pipe_time[pipe]
    if is_excluded(walk, own) or is_excluded(walk, other):
        return 0
    if time == NO_TIME:
        if not walk.rules.has_pipes:
            return 0
        return enter_process(walk, process, item.limit, number, BY_PIPE, pipe)
    if walk.rules.is_ordered and edges.is_mirrored and -time > item.limit:
        return 0  # forked before
    return enter_process(walk, process, fork_limit(walk, time, item.limit), number, BY_FORK, pipe)


# Data in a pipe depends on reads of the other side before the same time, memory on those before the
# fork.
cdef int visit_pipes(Walk *walk, u32 number, const Item *item) noexcept nogil:
    cdef Done *done = walk.processes + item.id
    cdef int status
    cdef u64 i
    if done.has_pipes and done.pipe_limit >= item.limit:
        return 0
    done.has_pipes = True
    done.pipe_limit = item.limit
    for i in range(walk.edges.pipe_start[item.id], walk.edges.pipe_start[item.id + 1]):
        status = pass_pipe(walk, number, item, i)
        if status < 0:
            return status
    return 0


cdef int visit(Walk *walk, u32 number) noexcept nogil:
    cdef Item item = (<Item *>walk.items.data)[number]  # a copy: the queue grows
    cdef int status
    if not item.is_process:
        return visit_path(walk, number, item)
    status = visit_files(walk, number, &item)
    return visit_pipes(walk, number, &item) if status == 0 else status


# What a path was made of is what its last content was made of; of any content something was made.
cdef inline u32 root_content(const Walk *walk, u32 path) noexcept nogil:
    if walk.edges.is_mirrored or not walk.rules.is_ordered:
        return 0
    return walk.edges.ends.last[path]


cdef int walk_from(Walk *walk, const u32 *roots, size_t n_roots) noexcept nogil:
    cdef size_t i
    cdef int status = 0
    for i in range(n_roots):
        if not is_path(walk, roots[i]):
            return DAMAGED
        walk.is_root[roots[i]] = True
        if add_item(walk, roots[i], root_content(walk, roots[i]), INT64_MAX, NO_ITEM, False,
                    BY_ROOT, 0) < 0:
            return OUT_OF_MEMORY
    while status == 0 and not walk.is_damaged and walk.waiting.len:
        status = visit(walk, pop(walk))
    return DAMAGED if walk.is_damaged else status


# ---- contents of a path ----
# Lists of uses in order of time -> the first of them that counts for a content, in log n steps.
#
# What a content was made of is not the beginning of a list: a log that one command writes for hours
# may be emptied by others a thousand times. Whatever order contents are asked for in, each use is
# found once, since who finds it takes it out. A walk makes the trees of the paths that it meets: the
# leaves are in the order of the list, and a node holds the greatest value below it. The value of a
# use is the last content that it counts for, counted from 1, and 0 when it was taken out.


cdef inline u32 n_uses(const Walk *walk, u32 path) noexcept nogil:
    return <u32>(walk.edges.by_path.start[path + 1] - walk.edges.by_path.start[path])


# Leaves of the tree of a path: a power of two.
cdef inline u64 n_leaves(const Walk *walk, u32 path) noexcept nogil:
    cdef u64 n = 1
    while n < n_uses(walk, path):
        n *= 2
    return n


cdef inline u32 *tree_of(const Walk *walk, u32 path) noexcept nogil:
    return <u32 *>walk.trees.data + (walk.tree_at[path] - 1)


# Of a use that does not exist: 0, as if it was taken out.
cdef inline u32 value_of(const Walk *walk, u32 path, u32 number) noexcept nogil:
    cdef const UseLists *lists = &walk.edges.by_path
    cdef u32 use = lists.use[lists.start[path] + number]
    if use >= walk.edges.uses.n:
        return 0
    if not walk.rules.is_ordered:
        return 1
    return 1 + content_of(&walk.edges.ends, &walk.edges.uses, use, path,
                          not walk.edges.is_mirrored, walk.edges.is_mirrored)


# Makes the tree of a path; OUT_OF_MEMORY.
cdef int tree_build(Walk *walk, u32 path) noexcept nogil:
    cdef u64 leaves = n_leaves(walk, path)
    cdef size_t size = 2 * leaves * sizeof(u32)
    cdef u32 *tree
    cdef u64 i
    if buffer_reserve(&walk.trees, size) < 0:
        return OUT_OF_MEMORY
    walk.tree_at[path] = walk.trees.len / sizeof(u32) + 1
    walk.trees.len += size
    tree = tree_of(walk, path)
    memset(tree, 0, size)
    for i in range(n_uses(walk, path)):
        tree[leaves + i] = value_of(walk, path, <u32>i)
    i = leaves - 1
    while i:
        tree[i] = max(tree[2 * i], tree[2 * i + 1])
        i -= 1
    return 0


# The number in its list of the first use that counts for a content and was not taken; else how many
# there are.
cdef u32 tree_find(const Walk *walk, u32 path, u32 content) noexcept nogil:
    cdef const u32 *tree = tree_of(walk, path)
    cdef u64 leaves = n_leaves(walk, path)
    cdef u64 wanted = <u64>content + 1  # never 0, the value of what was taken
    cdef u64 at = 1
    if tree[1] < wanted:
        return n_uses(walk, path)
    while at < leaves:
        at *= 2
        at += tree[at] < wanted
    return <u32>(at - leaves)


# Takes a use out, by its number in the list.
cdef void tree_take(Walk *walk, u32 path, u32 number) noexcept nogil:
    cdef u32 *tree = tree_of(walk, path)
    cdef u64 at = n_leaves(walk, path) + number
    tree[at] = 0
    at /= 2
    while at:
        tree[at] = max(tree[2 * at], tree[2 * at + 1])
        at /= 2
