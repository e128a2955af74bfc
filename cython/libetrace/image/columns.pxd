# SPDX-License-Identifier: Apache-2.0
# The columns of an open image as C sees them, checked: row numbers in them are in range.
from libetrace.image.schema cimport N_COLUMNS
from libetrace.core.types cimport s16, s32, s64, u8, u32, u64


cdef class Columns:
    cdef const char *data[N_COLUMNS]  # NULL: the image has no such table
    cdef size_t length[N_COLUMNS]  # elements
    cdef list views

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
