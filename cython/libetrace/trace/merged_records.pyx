# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The records of a process, merged: one for each execution and pair of paths.

Records are sorted by execution and path. Those of a process of very many are folded on the way.
"""
from libc.string cimport memset

from libetrace.core.memory cimport Buffer, Spill, buffer_add, buffer_free, buffer_reserve
from libetrace.core.types cimport s64, u32, u64, u8
from libetrace.trace.descriptors cimport (
    NO_CHANGE, Record, Use, add_write_end, has_end, last_use, next_use, sort_stamps, sort_uses,
)

cdef enum:
    READ = 0
    READ_WRITE = 2
    RUN = 12  # sorted by insertion
    FOLD_BYTES = 16 << 20  # of records of one process


cdef void merging_begin(Merging *merging, const Spill *spill) noexcept nogil:
    merging.fold_bytes = least_bytes(spill)


cdef void merging_free(Merging *merging) noexcept nogil:
    buffer_free(&merging.keys)
    buffer_free(&merging.spare)
    buffer_free(&merging.kept)
    buffer_free(&merging.uses)
    buffer_free(&merging.write_ends)


# ---- records in order ----


cdef inline bint is_before(const Key *a, const Key *b) noexcept nogil:
    if a.index != b.index:
        return a.index < b.index
    return a.files < b.files


cdef void sort_run(Key *keys, size_t n) noexcept nogil:
    cdef Key key
    cdef size_t i
    cdef size_t at
    for i in range(1, n):
        key = keys[i]
        at = i
        while at and is_before(&key, &keys[at - 1]):
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


cdef void merge_runs(const Key *keys, size_t middle, size_t n, Key *to) noexcept nogil:
    cdef size_t a = 0
    cdef size_t b = middle
    cdef size_t i
    cdef bint takes_b
    for i in range(n):
        takes_b = a == middle or (b < n and is_before(&keys[b], &keys[a]))
        to[i] = keys[b] if takes_b else keys[a]
        b += takes_b
        a += not takes_b


# Stable: of equal keys the record made first comes first. Returns the array that holds the result.
cdef Key *sort_keys(Key *keys, size_t n, Key *spare) noexcept nogil:
    cdef size_t width = RUN
    cdef size_t at
    cdef Key *other
    at = 0
    while at < n:
        sort_run(keys + at, min(<size_t>RUN, n - at))
        at += RUN
    while width < n:
        at = 0
        while at < n:
            merge_runs(keys + at, min(width, n - at), min(2 * width, n - at), spare + at)
            at += 2 * width
        other = keys
        keys = spare
        spare = other
        width *= 2
    return keys


cdef const Key *sort_records(Merging *merging, const Buffer *records) noexcept nogil:
    cdef size_t n = records.len / sizeof(Record)
    cdef const Record *record = <const Record *>records.data
    cdef Key *keys
    cdef size_t i
    merging.keys.len = merging.spare.len = 0
    if buffer_reserve(&merging.keys, (n + 1) * sizeof(Key)) < 0:
        return NULL
    if buffer_reserve(&merging.spare, (n + 1) * sizeof(Key)) < 0:
        return NULL
    keys = <Key *>merging.keys.data
    for i in range(n):
        keys[i].files = record[i].files
        keys[i].index = record[i].index
        keys[i].record = <u32>i
    keys = sort_keys(keys, n, <Key *>merging.spare.data)
    keys[n].index = 0xffffffff
    return keys


# ---- records of one pair of paths ----


cdef s64 merge_records(const Record *records, const Key *keys, Merged *merged) noexcept nogil:
    cdef const Record *record
    cdef s64 n = 0
    memset(merged, 0, sizeof(merged[0]))
    while keys[n].index == keys[0].index and keys[n].files == keys[0].files:
        record = &records[keys[n].record]
        if merged.latest == NULL or last_use(record) > merged.last:
            merged.last = max(merged.last, last_use(record))
            merged.latest = record
        if not record.is_copy:
            merge_open(merged, record)
        n += 1
    return n


cdef inline void merge_open(Merged *merged, const Record *record) noexcept nogil:
    if merged.first == NULL:
        merged.first = merged.earliest = record
        merged.begin = record.begin
        merged.access = record.access
    elif record.begin < merged.begin:
        merged.earliest = record
        merged.begin = record.begin
    if record.access != merged.access:
        if merged.other == NULL:
            merged.other = record
        merged.access = READ_WRITE
    merged.has_changes |= record.change != NO_CHANGE


# ---- uses ----


cdef int find_write_ends(Merging *merging, const Record *records, const Key *keys) noexcept nogil:
    cdef size_t i = 0
    merging.write_ends.len = 0
    while keys[i].index == keys[0].index:
        if add_write_end(&records[keys[i].record], &merging.write_ends) < 0:
            return -1
        i += 1
    sort_stamps(&merging.write_ends)
    return 0


cdef const Use *find_uses(Merging *merging, const Record *records, const Key *keys,
                          s64 n) noexcept nogil:
    cdef const Record *record
    cdef Use use
    cdef s64 i
    merging.uses.len = 0
    for i in range(n):
        record = &records[keys[i].record]
        use.begin, use.end = record.begin, last_use(record)
        use.record = use.last = keys[i].record
        use.access = record.access
        if buffer_add(&merging.uses, &use, sizeof(use)) < 0:
            return NULL
    sort_uses(<Use *>merging.uses.data, n)
    return <const Use *>merging.uses.data


# ---- a process of very many uses ----


# Records up to this are not folded: no more than the budget of what is in memory.
cdef u64 least_bytes(const Spill *spill) noexcept nogil:
    return FOLD_BYTES if spill.fd < 0 else min(<u64>FOLD_BYTES, spill.budget)


cdef int fold_records(Merging *merging, Buffer *buffer, const Spill *spill) noexcept nogil:
    cdef Record *records = <Record *>buffer.data
    cdef size_t n = buffer.len / sizeof(Record)
    cdef const Key *keys = sort_records(merging, buffer)
    cdef u8 *kept
    cdef size_t n_kept = 0
    cdef size_t i
    merging.kept.len = 0
    if keys == NULL or buffer_reserve(&merging.kept, n) < 0:
        return -1
    kept = <u8 *>merging.kept.data
    memset(kept, 0, n)
    if mark_kept(merging, records, keys, n, kept) < 0:
        return -1
    for i in range(n):
        if kept[i]:
            records[n_kept] = records[i]
            n_kept += 1
    buffer.len = n_kept * sizeof(Record)
    merging.fold_bytes = max(least_bytes(spill), 2 * <u64>buffer.len)
    return 0


# Of uses that read its two ends are enough when nothing was written in between.
cdef int mark_uses(Merging *merging, const Record *records, const Key *keys, s64 n,
                   u8 *kept) noexcept nogil:
    cdef const Use *uses = find_uses(merging, records, keys, n)
    cdef Use use
    cdef s64 at = 0
    cdef s64 i, end
    cdef bint is_whole
    if uses == NULL:
        return -1
    while at < n:
        end = at + next_use(uses + at, n - at, &merging.write_ends, &use)
        is_whole = use.access != READ or has_end(&merging.write_ends, use.begin, use.end)
        kept[use.record] = kept[use.last] = True
        for i in range(at, end if is_whole else at):
            kept[uses[i].record] = True
        at = end
    return 0


cdef int mark_kept(Merging *merging, const Record *records, const Key *keys, size_t n,
                   u8 *kept) noexcept nogil:
    cdef Merged merged
    cdef const Record *record
    cdef size_t at = 0
    cdef s64 n_merged, i
    while at < n:
        if (at == 0 or keys[at].index != keys[at - 1].index) and find_write_ends(
                merging, records, keys + at) < 0:
            return -1
        n_merged = merge_records(records, keys + at, &merged)
        if mark_uses(merging, records, keys + at, n_merged, kept) < 0:
            return -1
        kept[merged.latest - records] = True
        if merged.first != NULL:
            kept[merged.first - records] = kept[merged.earliest - records] = True
        if merged.other != NULL:
            kept[merged.other - records] = True
        for i in range(n_merged if merged.has_changes else 0):
            record = &records[keys[at + i].record]
            kept[record - records] |= not record.is_copy and record.change != NO_CHANGE
        at += n_merged
    return 0
