# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Hash table from 64-bit keys to dense rows: open addressing, at most half full."""
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from libetrace.core.memory cimport buffer_add, buffer_free

cdef enum:
    FIRST_SLOTS = 1024


cdef void _put(Rows *rows, u64 key, u32 row) noexcept nogil:
    cdef u64 at = key * <u64>0x9e3779b97f4a7c15
    at = (at ^ at >> 32) & rows.mask
    while rows.slots[at].row:
        at = (at + 1) & rows.mask
    rows.slots[at].key = key
    rows.slots[at].row = row + 1


cdef int rows_grow(Rows *rows) noexcept nogil:
    cdef u64 size = (rows.mask + 1) * 2 if rows.slots != NULL else FIRST_SLOTS
    cdef Slot *slots = <Slot *>calloc(size, sizeof(Slot))
    cdef const u64 *keys = <const u64 *>rows.keys.data
    cdef u64 i
    if slots == NULL:
        return -1
    free(rows.slots)
    rows.slots = slots
    rows.mask = size - 1
    for i in range(rows.n):
        _put(rows, keys[i], <u32>i)
    return 0


cdef u32 rows_add(Rows *rows, u64 key) noexcept nogil:
    if rows.n >= NO_ROW - 1 or (2 * rows.n >= rows.mask and rows_grow(rows) < 0):
        return NO_ROW
    if buffer_add(&rows.keys, &key, sizeof(key)) < 0:
        return NO_ROW
    _put(rows, key, <u32>rows.n)
    rows.n += 1
    return <u32>(rows.n - 1)


cdef void rows_free(Rows *rows) noexcept nogil:
    free(rows.slots)
    buffer_free(&rows.keys)
    memset(rows, 0, sizeof(rows[0]))
