# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Changes of files and names -> the times at which what a path stood for ended.

A write counts for a read unless an end lies between them: after the write was over, and before the
read began. A truncation ends what was there before an open of the same stamp reads; a rename takes
the name away after it was read.
"""
from libc.stdlib cimport calloc, free, malloc, qsort

from libetrace.core.types cimport INT64_MAX, s64
from libetrace.depend.uses cimport INHERITED, LINK, WRITES, End

cdef enum:
    AWAY = 5  # kinds of changes
    BEGUN = 6
    TYPE_BITS = 0x7c
    FIFO = 0x44  # an open for writing empties no pipe


cdef int compare_ends(const void *a, const void *b) noexcept nogil:
    cdef const End *x = <const End *>a
    cdef const End *y = <const End *>b
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    return x.is_away - y.is_away


cdef inline bint is_end(const ChangeColumns *changes, u64 i, u8 mode) noexcept nogil:
    return 1 <= changes.kind[i] < BEGUN and mode & TYPE_BITS != FIFO


cdef void sort_ends(Ends *ends) noexcept nogil:
    cdef u32 path
    cdef u32 n
    for path in range(ends.n_paths):
        n = ends.first[path + 1] - ends.first[path] - 1
        if n > 1:
            qsort(ends.ends + ends.first[path] - path, n, sizeof(End), compare_ends)


# Fills from behind: `first` shrinks to the first node of each path.
cdef void fill_ends(Ends *ends, const ChangeColumns *changes, const OpenColumns *opens,
                    const u8 *modes) noexcept nogil:
    cdef End *end
    cdef u32 path
    cdef u64 i = changes.n
    while i:
        i -= 1
        path = opens.path[changes.open[i]]
        if is_end(changes, i, modes[path]):
            ends.first[path] -= 1
            end = ends.ends + ends.first[path] - path
            end.time = changes.time[i]
            end.is_away = changes.kind[i] == AWAY


cdef int ends_init(Ends *ends, u32 n_paths, const ChangeColumns *changes, const OpenColumns *opens,
                   const u8 *modes) noexcept nogil:
    cdef u32 at = 0
    cdef u32 n
    cdef u32 path
    cdef u64 i
    ends.n_paths = n_paths
    ends.first = <u32 *>calloc(<size_t>n_paths + 1, sizeof(u32))
    ends.n_past = <u32 *>calloc(<size_t>n_paths + 1, sizeof(u32))
    ends.ends = <End *>malloc((<size_t>changes.n + 1) * sizeof(End))
    if ends.first == NULL or ends.n_past == NULL or ends.ends == NULL:
        return -1
    for i in range(changes.n):
        path = opens.path[changes.open[i]]
        ends.first[path] += is_end(changes, i, modes[path])
    for path in range(n_paths):
        n = ends.first[path]
        ends.first[path] = at + n  # fill_ends takes n away
        at += n + 1
    ends.first[n_paths] = at
    fill_ends(ends, changes, opens, modes)
    sort_ends(ends)
    return 0


cdef void ends_free(Ends *ends) noexcept nogil:
    free(ends.first)
    free(ends.n_past)
    free(ends.ends)
    ends.first = ends.n_past = NULL
    ends.ends = NULL


cdef inline u32 n_ends(const Ends *ends, u32 path) noexcept nogil:
    return ends.first[path + 1] - ends.first[path] - 1


# How many ends of the path come before: all up to `time`, but those away only when earlier.
cdef u32 count_past(const Ends *ends, u32 path, s64 time, bint with_away) noexcept nogil:
    cdef const End *end = ends.ends + ends.first[path] - path
    cdef u32 low = 0
    cdef u32 high = n_ends(ends, path)
    cdef u32 middle
    while low < high:
        middle = (low + high) / 2
        if end[middle].time < time or (end[middle].time == time
                                       and (with_away or not end[middle].is_away)):
            low = middle + 1
        else:
            high = middle
    return low


# What was there before the name was taken for the last time counts, as long as nothing came after.
cdef u32 find_last(const Ends *ends, u32 path, s64 last_begin, s64 last_end) noexcept nogil:
    cdef const End *end = ends.ends + ends.first[path] - path
    cdef u32 n = n_ends(ends, path)
    while n:
        n -= 1
        if end[n].time < last_begin if end[n].is_away else end[n].time <= last_end:
            return n + 1
    return 0


cdef int ends_find_last(Ends *ends, const RawUse *raw, u64 n_raw) noexcept nogil:
    cdef s64 *last_begin = <s64 *>malloc((<size_t>ends.n_paths + 1) * sizeof(s64))
    cdef s64 *last_end = <s64 *>malloc((<size_t>ends.n_paths + 1) * sizeof(s64))
    cdef int status = -1
    cdef u32 path
    cdef u64 i
    if last_begin != NULL and last_end != NULL:
        for path in range(ends.n_paths):
            last_begin[path] = last_end[path] = -INT64_MAX
        for i in range(n_raw):
            path = raw[i].path
            if raw[i].access & WRITES and n_ends(ends, path):
                last_begin[path] = max(last_begin[path], raw[i].begin)
                last_end[path] = max(last_end[path], raw[i].end)
        for path in range(ends.n_paths):
            ends.n_past[path] = find_last(ends, path, last_begin[path], last_end[path])
        status = 0
    free(last_begin)
    free(last_end)
    return status


# Since when a read sees what is in the file. What came with an inherited descriptor was opened
# before, nobody knows when; a symbolic link stands for whatever its target becomes.
cdef inline s64 since(const RawUse *raw) noexcept nogil:
    if raw.access & LINK:
        return INT64_MAX
    return -INT64_MAX if raw.access & INHERITED else raw.begin


cdef u32 node_of(const Ends *ends, const RawUse *raw, u8 access, bint is_mirrored) noexcept nogil:
    cdef u32 first = ends.first[raw.path]
    cdef u32 n = n_ends(ends, raw.path)
    cdef u32 n_past
    if access & WRITES:
        n_past = count_past(ends, raw.path, raw.end, True)
    else:
        n_past = count_past(ends, raw.path, since(raw), False)
    return first + (n - n_past if is_mirrored else n_past)
