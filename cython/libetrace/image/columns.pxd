# SPDX-License-Identifier: Apache-2.0
# The columns of an open image as C sees them: the one place that takes addresses out of an image.
from libetrace.image.schema cimport N_COLUMNS
from libetrace.core.types cimport s16, s32, s64, u8, u32, u64


# How many there are, with the address of the first.
cdef struct U1:
    const u8 *at
    u64 n

cdef struct S2:
    const s16 *at
    u64 n

cdef struct U4:
    const u32 *at
    u64 n

cdef struct S4:
    const s32 *at
    u64 n

cdef struct U8:
    const u64 *at
    u64 n

cdef struct S8:
    const s64 *at
    u64 n


cdef class Columns:
    cdef const char *data[N_COLUMNS]  # NULL: the image has no such table
    cdef size_t length[N_COLUMNS]  # elements
    cdef list views  # keep the columns where they are

    cdef int take(self, int number, path, str name, column, str dtype) except -1

cdef inline const u8 *u8_of(Columns columns, int number) noexcept nogil:
    return <const u8 *>columns.data[number]

cdef inline const s16 *s16_of(Columns columns, int number) noexcept nogil:
    return <const s16 *>columns.data[number]

cdef inline const s32 *s32_of(Columns columns, int number) noexcept nogil:
    return <const s32 *>columns.data[number]

cdef inline const u32 *u32_of(Columns columns, int number) noexcept nogil:
    return <const u32 *>columns.data[number]

cdef inline const s64 *s64_of(Columns columns, int number) noexcept nogil:
    return <const s64 *>columns.data[number]

cdef inline const u64 *u64_of(Columns columns, int number) noexcept nogil:
    return <const u64 *>columns.data[number]

cdef inline U1 u1_in(Columns columns, int number) noexcept nogil:
    return U1(<const u8 *>columns.data[number], columns.length[number])

cdef inline S2 s2_in(Columns columns, int number) noexcept nogil:
    return S2(<const s16 *>columns.data[number], columns.length[number])

cdef inline U4 u4_in(Columns columns, int number) noexcept nogil:
    return U4(<const u32 *>columns.data[number], columns.length[number])

cdef inline S4 s4_in(Columns columns, int number) noexcept nogil:
    return S4(<const s32 *>columns.data[number], columns.length[number])

cdef inline U8 u8_in(Columns columns, int number) noexcept nogil:
    return U8(<const u64 *>columns.data[number], columns.length[number])

cdef inline S8 s8_in(Columns columns, int number) noexcept nogil:
    return S8(<const s64 *>columns.data[number], columns.length[number])
