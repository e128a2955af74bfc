# SPDX-License-Identifier: Apache-2.0
# Keys to dense numbers, counted up from 0 in order of first use.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u32, u64

cdef enum:
    NO_ROW = 0xffffffff


cdef struct Slot:
    u64 key
    u32 row  # + 1; 0: free


cdef struct Rows:
    Slot *slots
    u64 mask
    u64 n
    Buffer keys  # u64 by row


cdef u32 rows_add(Rows *rows, u64 key) noexcept nogil
cdef int rows_grow(Rows *rows) noexcept nogil
cdef void rows_free(Rows *rows) noexcept nogil


# The row of a key, NO_ROW when it has none.
cdef inline u32 rows_find(const Rows *rows, u64 key) noexcept nogil:
    cdef u64 at = key * <u64>0x9e3779b97f4a7c15
    at = (at ^ at >> 32) & rows.mask
    if rows.slots == NULL:
        return NO_ROW
    while rows.slots[at].row:
        if rows.slots[at].key == key:
            return rows.slots[at].row - 1
        at = (at + 1) & rows.mask
    return NO_ROW


# The row of a key, a new one if need be; NO_ROW when there is no memory.
cdef inline u32 rows_get(Rows *rows, u64 key) noexcept nogil:
    cdef u32 row = rows_find(rows, key)
    return row if row != NO_ROW else rows_add(rows, key)
