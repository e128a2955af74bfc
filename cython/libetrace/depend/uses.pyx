# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Uses of files -> lists by path and by process, in order of time.

All uses are sorted once (radix sort of the stamps) and dealt out to their owners in that order.
"""
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from libetrace.depend.ends cimport node_of

cdef enum:
    RADIX_BITS = 11
    N_BUCKETS = 1 << RADIX_BITS


cdef struct Sortable:
    u64 key
    u32 number


cdef inline s64 key_of(const RawUse *raw, bint is_mirrored) noexcept nogil:
    return -raw.end if is_mirrored else raw.begin


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
cdef u64 fill_keys(const RawUse *raw, u64 n, bint is_mirrored, Sortable *items) noexcept nogil:
    cdef s64 smallest = key_of(raw, is_mirrored) if n else 0
    cdef u64 largest = 0
    cdef u64 i
    for i in range(n):
        smallest = min(smallest, key_of(raw + i, is_mirrored))
    for i in range(n):
        items[i].key = <u64>key_of(raw + i, is_mirrored) - <u64>smallest
        items[i].number = <u32>i
        largest = max(largest, items[i].key)
    return largest


cdef u32 *order_uses(const RawUse *raw, u64 n, bint is_mirrored) noexcept nogil:
    cdef Sortable *items = <Sortable *>malloc((2 * n + 1) * sizeof(Sortable))
    cdef u32 *order = <u32 *>malloc((n + 1) * sizeof(u32))
    cdef u64 *counts = <u64 *>malloc(N_BUCKETS * sizeof(u64))
    cdef Sortable *source = items
    cdef Sortable *target = items + n
    cdef u64 largest
    cdef int shift = 0
    cdef u64 i
    if items != NULL and order != NULL and counts != NULL:
        largest = fill_keys(raw, n, is_mirrored, items)
        while shift < 64 and largest >> shift:
            sort_pass(source, target, n, shift, counts)
            source, target = target, source
            shift += RADIX_BITS
        for i in range(n):
            order[i] = source[i].number
    else:
        free(order)
        order = NULL
    free(items)
    free(counts)
    return order


cdef inline u32 owner_of(const RawUse *raw, const Owners *owners, bint by_path) noexcept nogil:
    if by_path:
        return raw.path
    if raw.access & LINK:
        return owners.n_processes + (raw.row - owners.first_link) / 2
    return owners.process_of[raw.execution]


cdef void deal(UseLists *lists, const RawUse *raw, const u32 *order, u64 n_raw,
               const Owners *owners, u8 access, bint by_path, bint is_mirrored) noexcept nogil:
    cdef const RawUse *one
    cdef Use *use
    cdef u64 *place
    cdef u64 i
    for i in range(n_raw):
        one = raw + order[i]
        if not one.access & access:
            continue
        place = lists.start + owner_of(one, owners, by_path)
        use = lists.uses + place[0]
        place[0] += 1
        use.key = key_of(one, is_mirrored)
        use.limit = -one.begin if is_mirrored else one.end
        use.target = owner_of(one, owners, not by_path)
        use.execution = one.execution
        use.row = one.row
        use.node = owners.ends.first[one.path]
        if owners.ends.first[one.path + 1] - use.node > 1:  # most paths are one node
            use.node = node_of(owners.ends, one, access, is_mirrored)


cdef int lists_init(UseLists *lists, u32 n_owners, const RawUse *raw, const u32 *order, u64 n_raw,
                    const Owners *owners, u8 access, bint by_path,
                    bint is_mirrored) noexcept nogil:
    cdef u64 i
    cdef u64 n = 0
    lists.n = n_owners
    lists.start = <u64 *>calloc(<size_t>n_owners + 2, sizeof(u64))
    if lists.start == NULL:
        return -1
    for i in range(n_raw):
        if raw[i].access & access:
            lists.start[<u64>owner_of(raw + i, owners, by_path) + 2] += 1
            n += 1
    for i in range(n_owners):
        lists.start[i + 2] += lists.start[i + 1]
    lists.uses = <Use *>malloc((n + 1) * sizeof(Use))
    if lists.uses == NULL:
        return -1
    # dealing moves each start to the next one's place
    lists.start += 1
    deal(lists, raw, order, n_raw, owners, access, by_path, is_mirrored)
    lists.start -= 1
    return 0


cdef void lists_free(UseLists *lists) noexcept nogil:
    free(lists.start)
    free(lists.uses)
    memset(lists, 0, sizeof(lists[0]))
