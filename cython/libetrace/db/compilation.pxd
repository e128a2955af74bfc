# SPDX-License-Identifier: Apache-2.0
from libetrace.image.columns cimport U4, U8
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport u64


cdef class Compilation:
    cdef Mapped columns
    cdef u64 row

    cdef list numbers(self, const U8 *start, const U4 *column)
    cdef list opens_named(self, const U8 *start, const U4 *strings)
    cdef list texts(self, const U8 *start, const U4 *strings)
    cdef list opens_of(self, list paths, bint is_written)
    cdef list definitions(self, bint is_undef)


cdef Compilation make_compilation(Mapped columns, u64 row)
