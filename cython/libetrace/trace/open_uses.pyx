# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Records of a pair of paths -> its uses: what was read after a write was over is not in it.

A use lasts from an Open to the last close of its descriptors. Uses that overlap are one. So are
two that read, unless the execution ended a write since the first of them began: only then can
somebody tell them apart, and compilers read some headers again and again.
"""
from libc.stdlib cimport qsort

from libetrace.core.memory cimport buffer_add
from libetrace.core.types cimport u64

cdef enum:
    READ = 0
    READ_WRITE = 2
    FEW = 16  # sorted by insertion


cdef int add_write_end(const Record *record, Buffer *ends) noexcept nogil:
    cdef s64 end = last_use(record)
    if record.access == READ:
        return 0
    return buffer_add(ends, &end, sizeof(end))


cdef int compare_stamps(const void *a, const void *b) noexcept nogil:
    cdef s64 x = (<const s64 *>a)[0]
    cdef s64 y = (<const s64 *>b)[0]
    return (x > y) - (x < y)


cdef void sort_stamps(Buffer *ends) noexcept nogil:
    if ends.len > sizeof(s64):
        qsort(ends.data, ends.len / sizeof(s64), sizeof(s64), compare_stamps)


cdef inline bint is_before(const Use *a, const Use *b) noexcept nogil:
    if a.begin != b.begin:
        return a.begin < b.begin
    return a.record < b.record


cdef int compare_uses(const void *a, const void *b) noexcept nogil:
    return 1 if is_before(<const Use *>b, <const Use *>a) else -1


cdef void sort_uses(Use *uses, size_t n) noexcept nogil:
    cdef Use use
    cdef size_t i
    cdef size_t at
    if n > FEW:
        qsort(uses, n, sizeof(Use), compare_uses)
        return
    for i in range(1, n):
        use = uses[i]
        at = i
        while at and is_before(&use, &uses[at - 1]):
            uses[at] = uses[at - 1]
            at -= 1
        uses[at] = use


cdef bint has_end(const Buffer *ends, s64 begin, s64 before) noexcept nogil:
    cdef const s64 *end = <const s64 *>ends.data
    cdef u64 n = ends.len / sizeof(s64)
    cdef u64 low = 0
    cdef u64 high = n
    cdef u64 middle
    while low < high:
        middle = (low + high) / 2
        if end[middle] < begin:
            low = middle + 1
        else:
            high = middle
    return low < n and end[low] < before


cdef inline bint belongs(const Use *use, const Use *next, const Buffer *ends) noexcept nogil:
    if next.begin < use.end or next.begin == use.begin:
        return True
    if use.access != READ or next.access != READ:
        return False
    return not has_end(ends, use.begin, next.begin)


cdef size_t next_use(const Use *uses, size_t n, const Buffer *ends, Use *use) noexcept nogil:
    cdef size_t i = 1
    use[0] = uses[0]
    while i < n and belongs(use, &uses[i], ends):
        if uses[i].end > use.end:
            use.end = uses[i].end
            use.last = uses[i].record
        if uses[i].access != use.access:
            use.access = READ_WRITE
        i += 1
    return i
