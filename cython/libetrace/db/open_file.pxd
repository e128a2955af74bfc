# SPDX-License-Identifier: Apache-2.0
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport u8, u16, u64


cdef class Open:
    cdef Mapped columns
    cdef u64 row

    cdef bint has_type(self, u8 type)
    cdef bint is_kind(self, u16 kinds) except -1


cdef Open make_open(Mapped columns, u64 row)
cdef object compare(u64 row, u64 other, int operator)
