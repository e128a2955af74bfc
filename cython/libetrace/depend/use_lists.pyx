# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Uses of files -> lists of them by path and by process, in order of time.

All uses are sorted once in each direction (radix sort of the stamps) and dealt out to their owners
in that order.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from libetrace.core.types cimport INT64_MAX
from libetrace.depend.uses cimport path_of, process_of

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


# From behind, so that `start` goes down to where each list begins.
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


# ---- pipes ----


cdef void deal_pipes(const u32 *process_of, u64 n_executions, u64 n_processes, const u64 *readers,
                     const u32 *reader, bint of_writers, u64 *start, u32 *own,
                     u32 *other) noexcept nogil:
    cdef u64 writer, i, place
    cdef u32 own_execution
    for writer in range(n_executions):
        for i in range(readers[writer], readers[writer + 1]):
            start[process_of[writer if of_writers else reader[i]]] += 1
    for i in range(1, n_processes + 1):
        start[i] += start[i - 1]
    writer = n_executions
    while writer:
        writer -= 1
        i = readers[writer + 1]
        while i > readers[writer]:
            i -= 1
            own_execution = <u32>writer if of_writers else reader[i]
            place = start[process_of[own_execution]] - 1
            start[process_of[own_execution]] = place
            own[place] = own_execution
            other[place] = reader[i] if of_writers else <u32>writer
