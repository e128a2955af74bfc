# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns of an image -> uses of files: opens, inherited descriptors, programs.

A rename or a link (end 0) is done at once. What one execution used several times by the same name
is one open; it lasts from its first begin to its last end.
"""
from libetrace.types cimport INT64_MAX
from libetrace.uses cimport READS, WRITES

cdef enum:
    ACCESS = 3


cdef inline u8 access_of(u8 mode) noexcept nogil:
    cdef u8 access = mode & ACCESS
    if access == 0:
        return READS
    return WRITES if access == 1 else READS | WRITES


cdef u64 take_uses(const UseColumns *columns, RawUse *raw, u64 n) noexcept nogil:
    cdef RawUse *use
    cdef u64 i
    for i in range(columns.n):
        use = raw + n + i
        use.begin = max(columns.begin[i], 0)
        use.end = max(columns.end[i], use.begin)
        if columns.until != NULL:
            use.end = max(columns.until[i], use.end)
        use.path = columns.path[i]
        use.execution = columns.execution[i]
        use.row = <u32>(n + i)
        use.access = access_of(columns.mode[i])
    return n + columns.n


# Opens have stamps of the clock, executions count from the first one: the smallest difference is
# the first stamp, or a little later when no execution began with an open.
cdef s64 first_stamp(const ProgramColumns *columns, const s64 *open_ns, const u32 *opener,
                     u64 n_opens) noexcept nogil:
    cdef s64 smallest = INT64_MAX
    cdef u64 i
    for i in range(n_opens):
        if open_ns[i] > 0 and columns.start[opener[i]] >= 0:
            smallest = min(smallest, open_ns[i] - columns.start[opener[i]])
    return max(smallest, 0) if smallest != INT64_MAX else 0


cdef u64 take_programs(const ProgramColumns *columns, const s64 *open_ns, const u32 *opener,
                       u64 n_opens, bint all_programs, u8 *is_written, RawUse *raw,
                       u64 n) noexcept nogil:
    cdef s64 first = first_stamp(columns, open_ns, opener, n_opens)
    cdef u64 first_row = n
    cdef RawUse *use
    cdef u32 i
    for i in range(<u32>n):
        if raw[i].access & WRITES:
            is_written[raw[i].path] = True
    for i in range(columns.n):
        if columns.binary[i] < 0 or not (all_programs or is_written[columns.binary[i]]):
            continue
        use = raw + n
        use.begin = min(max(columns.start[i], 0), INT64_MAX - first) + first
        use.end = use.begin
        use.path = <u32>columns.binary[i]
        use.execution = i
        use.row = <u32>(first_row + i)
        use.access = READS
        n += 1
    return n
