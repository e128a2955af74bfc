# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Walks from files to what they were made of (or, with mirrored lists, to what was made of them).

The rules of time: a write depends on what its process read from before it ended, a read on the
writes that began before it ended, unless what they wrote was gone by then (ends.pyx): a path is as
many nodes as it had contents. With lists in order of time what counts is always the beginning
of a list, so that a walk keeps for each path and process how much of its list is done, and looks
at each use once: the cost is the number of uses reached. Items wait in one queue, nearest first;
it stays, and is the proof of everything found.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from libetrace.depend.content_trees cimport trees_copy, trees_find, trees_set, value_of
from libetrace.core.memory cimport buffer_add, buffer_free
from libetrace.core.types cimport INT64_MAX
from libetrace.depend.uses cimport Ends, Use


cdef int walk_init(Walk *walk, const Edges *edges) noexcept nogil:
    cdef size_t n_paths = <size_t>edges.by_path.n + 1
    memset(walk, 0, sizeof(walk[0]))
    walk.edges = edges
    walk.paths = <Mark *>calloc(n_paths, sizeof(Mark))
    walk.processes = <Mark *>calloc(<size_t>edges.by_process.n + 1, sizeof(Mark))
    walk.listed = <u32 *>calloc(n_paths, sizeof(u32))
    walk.rooted = <u32 *>calloc(n_paths, sizeof(u32))
    walk.via_use = <u64 *>calloc(n_paths, sizeof(u64))
    walk.via_item = <u32 *>calloc(n_paths, sizeof(u32))
    if trees_copy(&walk.trees, &edges.trees) < 0 or walk.paths == NULL:
        return -1
    if walk.processes == NULL or walk.listed == NULL or walk.rooted == NULL:
        return -1
    return -1 if walk.via_use == NULL or walk.via_item == NULL else 0


cdef void walk_free(Walk *walk) noexcept nogil:
    free(walk.paths)
    free(walk.trees.trees)
    buffer_free(&walk.taken)
    free(walk.processes)
    free(walk.listed)
    free(walk.rooted)
    free(walk.via_use)
    free(walk.via_item)
    buffer_free(&walk.items)
    buffer_free(&walk.found)
    buffer_free(&walk.entered)
    buffer_free(&walk.left)


# The mark of this walk: a stale one is reset.
cdef inline Mark *mark_of(const Walk *walk, Mark *mark, u64 start) noexcept nogil:
    if mark.walk != walk.number:
        mark.walk = walk.number
        mark.place = start
        mark.limit = -INT64_MAX
    return mark


cdef inline Mark *path_mark(const Walk *walk, u32 path) noexcept nogil:
    return mark_of(walk, walk.paths + path, walk.edges.by_path.start[path])


cdef inline bint has_contents(const Walk *walk, u32 path) noexcept nogil:
    return walk.edges.ends.first[path + 1] - walk.edges.ends.first[path] > 1


# The next use of a path that counts for a node.
cdef inline u64 next_use(const Walk *walk, u32 path, u32 node) noexcept nogil:
    if has_contents(walk, path):
        return trees_find(&walk.trees, &walk.edges.ends, &walk.edges.by_path, path, node)
    return path_mark(walk, path).place


# What was taken is not found again in this walk.
cdef int take_use(Walk *walk, u32 path, u64 use) noexcept nogil:
    cdef Taken taken
    if not has_contents(walk, path):
        path_mark(walk, path).place = use + 1
        return 0
    taken.use = use
    taken.path = path
    trees_set(&walk.trees, &walk.edges.by_path, path, use, 0)
    return buffer_add(&walk.taken, &taken, sizeof(taken))


cdef void put_back(Walk *walk) noexcept nogil:
    cdef const Taken *taken = <const Taken *>walk.taken.data
    cdef size_t i
    for i in range(walk.taken.len / sizeof(Taken)):
        trees_set(&walk.trees, &walk.edges.by_path, taken[i].path, taken[i].use,
                  value_of(&walk.edges.ends, &walk.edges.by_path, taken[i].path, taken[i].use))
    walk.taken.len = 0


cdef inline Mark *process_mark(const Walk *walk, u32 process) noexcept nogil:
    return mark_of(walk, walk.processes + process, walk.edges.by_process.start[process])


cdef inline bint is_excluded(const Walk *walk, u32 execution) noexcept nogil:
    return walk.rules.excluded != NULL and walk.rules.excluded[execution]


# A root may be left even when it is a module.
cdef inline bint is_stop(const Walk *walk, u32 path) noexcept nogil:
    if walk.rules.stops != NULL and walk.rules.stops[path]:
        return True
    if walk.rules.modules == NULL or not walk.rules.modules[path]:
        return False
    return walk.rooted[path] != walk.number


cdef inline int add_item(Walk *walk, u32 id, u32 node, s64 limit, u32 parent, bint is_process,
                         u8 kind, u64 edge) noexcept nogil:
    cdef Item item
    item.node = node
    item.limit = limit
    item.id = id
    item.parent = parent
    item.edge = edge
    item.is_process = is_process
    item.kind = kind
    return buffer_add(&walk.items, &item, sizeof(item))


# A path waits only when something of its list is new within the limit.
cdef int enter_path(Walk *walk, u32 path, u32 node, s64 limit, u32 parent,
                    u64 edge) noexcept nogil:
    cdef u64 use = next_use(walk, path, node)
    if use == walk.edges.by_path.start[path + 1] or walk.edges.by_path.uses[use].key > limit:
        return 0
    return add_item(walk, path, node, limit, parent, False, BY_USE, edge)


cdef inline bint has_more(const Walk *walk, u32 process, const Mark *mark, s64 limit) noexcept nogil:
    if mark.place != walk.edges.by_process.start[process + 1]:
        if walk.edges.by_process.uses[mark.place].key <= limit:
            return True
    if not walk.rules.has_pipes or mark.limit >= limit:
        return False
    return walk.edges.pipe_start[process] != walk.edges.pipe_start[process + 1]


cdef int enter_process(Walk *walk, u32 process, s64 limit, u32 parent, u8 kind,
                       u64 edge) noexcept nogil:
    if not has_more(walk, process, process_mark(walk, process), limit):
        return 0
    return add_item(walk, process, 0, limit, parent, True, kind, edge)


cdef inline s64 limit_of(const Walk *walk, const Use *use) noexcept nogil:
    return use.limit if walk.rules.is_ordered else INT64_MAX


# Who used the path in time.
cdef int visit_path(Walk *walk, u32 number, Item item) noexcept nogil:
    cdef const Use *uses = walk.edges.by_path.uses
    cdef u64 end = walk.edges.by_path.start[item.id + 1]
    cdef u64 i = next_use(walk, item.id, item.node)
    while i < end and uses[i].key <= item.limit:
        if take_use(walk, item.id, i) < 0:
            return -1
        if not is_excluded(walk, uses[i].execution):
            if buffer_add(&walk.entered, &i, sizeof(i)) < 0:
                return -1
            if enter_process(walk, uses[i].target, limit_of(walk, uses + i), number, BY_USE,
                             i) < 0:
                return -1
        i = next_use(walk, item.id, item.node)
    return 0


# Without order a path is one node.
cdef inline u32 node_of_use(const Walk *walk, const Use *use) noexcept nogil:
    return use.node if walk.rules.is_ordered else walk.edges.ends.first[use.target]


# Mirrored, a path that was written counts as made of something only by its last content, as it does
# when it is asked for.
cdef inline bint is_last(const Walk *walk, const Use *use) noexcept nogil:
    cdef const Ends *ends = &walk.edges.ends
    if not walk.edges.is_mirrored or not walk.rules.is_ordered:
        return True
    return use.node + ends.n_past[use.target] < ends.first[use.target + 1]


cdef int list_path(Walk *walk, u32 path, u32 number, u64 use) noexcept nogil:
    if walk.listed[path] == walk.number:
        return 0
    walk.listed[path] = walk.number
    walk.via_use[path] = use
    walk.via_item[path] = number
    return buffer_add(&walk.found, &path, sizeof(path))


cdef int visit_files(Walk *walk, u32 number, const Item *item) noexcept nogil:
    cdef const Use *uses = walk.edges.by_process.uses
    cdef u64 end = walk.edges.by_process.start[item.id + 1]
    cdef Mark *mark = process_mark(walk, item.id)
    cdef u64 i
    while mark.place < end and uses[mark.place].key <= item.limit:
        i = mark.place
        mark.place += 1
        if is_excluded(walk, uses[i].execution):
            continue
        if buffer_add(&walk.left, &i, sizeof(i)) < 0:
            return -1
        if is_last(walk, uses + i) and list_path(walk, uses[i].target, number, i) < 0:
            return -1
        if is_stop(walk, uses[i].target):
            continue
        if enter_path(walk, uses[i].target, node_of_use(walk, uses + i),
                      limit_of(walk, uses + i), number, i) < 0:
            return -1
    return 0


# Data in a pipe came from what the other side did before the same time.
cdef int visit_pipes(Walk *walk, u32 number, const Item *item) noexcept nogil:
    cdef Mark *mark = process_mark(walk, item.id)
    cdef const Pipe *pipe
    cdef u64 i
    if not walk.rules.has_pipes or mark.limit >= item.limit:
        return 0
    mark.limit = item.limit
    for i in range(walk.edges.pipe_start[item.id], walk.edges.pipe_start[item.id + 1]):
        pipe = walk.edges.pipes + i
        if is_excluded(walk, pipe.own) or is_excluded(walk, pipe.other):
            continue
        if enter_process(walk, pipe.target, item.limit, number, BY_PIPE, i) < 0:
            return -1
    return 0


cdef int visit(Walk *walk, u32 number) noexcept nogil:
    cdef Item item = (<Item *>walk.items.data)[number]  # a copy: the queue grows
    if not item.is_process:
        return visit_path(walk, number, item)
    if visit_files(walk, number, &item) < 0:
        return -1
    return visit_pipes(walk, number, &item)


# A new number makes the marks of the walk before worthless.
cdef void begin(Walk *walk) noexcept nogil:
    walk.number += 1
    put_back(walk)
    walk.items.len = 0
    walk.found.len = 0
    walk.entered.len = 0
    walk.left.len = 0


# What a path was made of is what its last content was made of; of any content something was made.
cdef inline u32 root_node(const Walk *walk, u32 path) noexcept nogil:
    cdef const Ends *ends = &walk.edges.ends
    if walk.edges.is_mirrored or not walk.rules.is_ordered:
        return ends.first[path]
    return ends.first[path] + ends.n_past[path]


cdef int walk_from(Walk *walk, const u32 *roots, size_t n_roots) noexcept nogil:
    cdef size_t i
    cdef u32 number = 0
    begin(walk)
    for i in range(n_roots):
        walk.rooted[roots[i]] = walk.number
        if add_item(walk, roots[i], root_node(walk, roots[i]), INT64_MAX, NO_ITEM, False, BY_ROOT,
                    0) < 0:
            return -1
    while number < walk.items.len / sizeof(Item):
        if visit(walk, number) < 0:
            return -1
        number += 1
    return 0
