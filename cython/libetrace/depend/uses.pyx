# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Uses of files: which content of a path each is of, whose they are, and lists of them in order of time.

Contents: a write counts for a read unless an end lies between them: after the write was over, and before
the read began. A truncation ends what was there before an open of the same stamp reads; a rename takes
the name away after it was read.

Processes, by union-find over the forks: a thread has a upid of its own and shares its memory with its
creator: what one reads the other may write. The flags are those of clone(2); a vfork shares memory only
until the child executes.

Lists: all uses are sorted once in each direction (radix sort of the stamps) and dealt out to their
owners in that order.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from libetrace.core.types cimport INT64_MAX


# ---- contents ----


# How many ends of the path come before: all up to `time`, but those away only when earlier.
cdef u32 count_past(const Ends *ends, u32 path, s64 time, bint with_away) noexcept nogil:
    cdef u64 first = ends.start[path]
    cdef u64 low = first
    cdef u64 high = ends.start[path + 1]
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if ends.time[middle] < time or (ends.time[middle] == time
                                        and (with_away or not ends.is_away[middle])):
            low = middle + 1
        else:
            high = middle
    return <u32>(low - first)


# Since when a read sees what is in the file. What came with an inherited descriptor was opened
# before, nobody knows when; a symbolic link stands for whatever its target becomes.
cdef inline s64 since(const Uses *uses, u64 row) noexcept nogil:
    cdef u8 kind = kind_of(uses, row)
    if kind & LINK:
        return INT64_MAX
    return -INT64_MAX if kind & INHERITED else uses.begin[row]


cdef u32 content_of(const Ends *ends, const Uses *uses, u64 row, u32 path, bint is_write,
                    bint is_mirrored) noexcept nogil:
    cdef u32 n = n_ends(ends, path)
    cdef u32 n_past
    if n == 0:  # most paths
        return 0
    if is_write:
        n_past = count_past(ends, path, uses.end[row], True)
    else:
        n_past = count_past(ends, path, since(uses, row), False)
    return n - n_past if is_mirrored else n_past


# The content before the name was last taken away counts, unless a later one exists.
cdef u32 find_last(const Ends *ends, u32 path, s64 last_begin, s64 last_end) noexcept nogil:
    cdef u32 n = n_ends(ends, path)
    cdef u64 at
    while n:
        n -= 1
        at = ends.start[path] + n
        if ends.time[at] <= last_begin if ends.is_away[at] else ends.time[at] <= last_end:
            return n + 1
    return 0


cdef void find_last_contents(const Ends *ends, const Uses *uses, u32 n_paths, const u64 *starts,
                             const u32 *writes, u32 *last) noexcept nogil:
    cdef s64 last_begin, last_end
    cdef u32 path
    cdef u64 i
    for path in range(n_paths):
        last_begin = last_end = -INT64_MAX
        if n_ends(ends, path):
            for i in range(starts[path], starts[path + 1]):
                last_begin = max(last_begin, uses.begin[writes[i]])
                last_end = max(last_end, uses.end[writes[i]])
        last[path] = find_last(ends, path, last_begin, last_end)


# ---- processes ----


cdef enum:
    CLONE_VM = 0x100
    CLONE_VFORK = 0x4000
    CLONE_THREAD = 0x10000


cdef inline u32 root_of(u32 *parent, u32 row) noexcept nogil:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = parent[row]
    return row


# The smaller row stays the root, so that a root comes before all of its own.
cdef inline void join(u32 *parent, u32 a, u32 b) noexcept nogil:
    a = root_of(parent, a)
    b = root_of(parent, b)
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


cdef inline bint shares_memory(u64 flags) noexcept nogil:
    return flags & CLONE_THREAD or flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM


cdef void join_threads(const Executions *executions, u32 *parent) noexcept nogil:
    cdef u32 row
    cdef u64 i
    for row in range(executions.n):
        for i in range(executions.children_start[row], executions.children_start[row + 1]):
            if executions.child[i] >= 0 and shares_memory(executions.flags[i]):
                join(parent, row, <u32>executions.child[i])


cdef u32 number_roots(u32 *parent, u32 n) noexcept nogil:
    cdef u32 n_processes = 0
    cdef u32 row
    for row in range(n):
        parent[row] = root_of(parent, row)
    for row in range(n):
        if parent[row] == row:
            parent[row] = n_processes
            n_processes += 1
        else:
            parent[row] = parent[parent[row]]
    return n_processes


cdef u32 number_processes(const Executions *executions, u32 *process_of) noexcept nogil:
    cdef u32 row
    for row in range(executions.n):
        process_of[row] = row
        if row and executions.upid[row] == executions.upid[row - 1]:
            process_of[row] = process_of[row - 1]
    join_threads(executions, process_of)
    if executions.wrapper != NULL:
        for row in range(executions.n):
            if executions.wrapper[row] >= 0:
                join(process_of, row, <u32>executions.wrapper[row])
    return number_roots(process_of, executions.n)


cdef enum:
    RADIX_BITS = 11
    N_BUCKETS = 1 << RADIX_BITS


# ---- order of time ----


cdef struct Sortable:
    u64 key
    u32 number


# One stable pass by RADIX_BITS of the key.
cdef void sort_pass(const Sortable *source, Sortable *target, u64 n, int shift,
                    u64 *counts) noexcept nogil:
    cdef u64 i
    cdef u64 place = 0
    cdef u64 count
    memset(counts, 0, N_BUCKETS * sizeof(u64))
    for i in range(n):
        counts[(source[i].key >> shift) & (N_BUCKETS - 1)] += 1
    for i in range(<u64>N_BUCKETS):
        count = counts[i]
        counts[i] = place
        place += count
    for i in range(n):
        count = (source[i].key >> shift) & (N_BUCKETS - 1)
        target[counts[count]] = source[i]
        counts[count] += 1


# Fills the keys, the smallest being 0; returns the largest.
cdef u64 fill_keys(const s64 *stamps, u64 n, bint is_mirrored, Sortable *items) noexcept nogil:
    cdef s64 sign = -1 if is_mirrored else 1
    cdef s64 smallest = INT64_MAX
    cdef u64 largest = 0
    cdef u64 i
    for i in range(n):
        smallest = min(smallest, sign * stamps[i])
    for i in range(n):
        items[i].key = <u64>(sign * stamps[i]) - <u64>smallest
        items[i].number = <u32>i
        largest = max(largest, items[i].key)
    return largest


# Writes the numbers of the stamps in order of time, backwards when mirrored. -1: no memory.
cdef int order_stamps(const s64 *stamps, u64 n, bint is_mirrored, u32 *order) noexcept nogil:
    cdef Sortable *items = <Sortable *>malloc((2 * n + 1) * sizeof(Sortable))
    cdef u64 *counts = <u64 *>malloc(N_BUCKETS * sizeof(u64))
    cdef Sortable *source = items
    cdef Sortable *target = items + n
    cdef u64 largest
    cdef int shift = 0
    cdef u64 i
    if items == NULL or counts == NULL:
        free(items)
        free(counts)
        return -1
    largest = fill_keys(stamps, n, is_mirrored, items)
    while shift < 64 and largest >> shift:
        sort_pass(source, target, n, shift, counts)
        source, target = target, source
        shift += RADIX_BITS
    for i in range(n):
        order[i] = source[i].number
    free(items)
    free(counts)
    return 0


# ---- lists ----


cdef inline u32 owner_of(const Uses *uses, u64 row, bint by_path) noexcept nogil:
    return path_of(uses, row) if by_path else process_of(uses, row)


# Writes to `start` where the list of each owner ends; returns how long all are.
cdef u64 count_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, u64 *start,
                     u64 n_owners) noexcept nogil:
    cdef u64 i
    for i in range(uses.n):
        if access[i] & wanted:
            start[owner_of(uses, i, by_path)] += 1
    for i in range(1, n_owners + 1):
        start[i] += start[i - 1]
    return start[n_owners]


# From the end, so that `start` goes down to where each list begins.
cdef void fill_lists(const Uses *uses, const u8 *access, u8 wanted, bint by_path, const u32 *order,
                     u64 *start, u32 *rows) noexcept nogil:
    cdef u64 i = uses.n
    cdef u64 *place
    while i:
        i -= 1
        if access[order[i]] & wanted:
            place = start + owner_of(uses, order[i], by_path)
            place[0] -= 1
            rows[place[0]] = order[i]


# ---- pipes and forks ----


cdef void deal_links(const Links *links, u64 n_processes, bint of_writers, u64 *start, u32 *own,
                     u32 *other, u32 *process, s64 *time) noexcept nogil:
    cdef const Link *link
    cdef u64 i = links.n
    cdef u64 place
    for place in range(links.n):
        link = links.all + place
        start[link.writer_process if of_writers else link.reader_process] += 1
    for place in range(1, n_processes + 1):
        start[place] += start[place - 1]
    while i:
        i -= 1
        link = links.all + i
        place = start[link.writer_process if of_writers else link.reader_process] - 1
        start[link.writer_process if of_writers else link.reader_process] = place
        own[place] = link.writer if of_writers else link.reader
        other[place] = link.reader if of_writers else link.writer
        process[place] = link.reader_process if of_writers else link.writer_process
        time[place] = link.time
