# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Times at which contents of a path ended -> the content that a use refers to.

A write counts for a read unless an end lies between them: after the write was over, and before the
read began. A truncation ends what was there before an open of the same stamp reads; a rename takes
the name away after it was read.
"""
from libetrace.core.types cimport INT64_MAX
from libetrace.depend.uses cimport INHERITED, LINK, kind_of


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
        if ends.time[at] < last_begin if ends.is_away[at] else ends.time[at] <= last_end:
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
