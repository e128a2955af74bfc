# SPDX-License-Identifier: Apache-2.0
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport s64, u8, u64


cdef class Execution:
    cdef Mapped columns
    cdef u64 row

    cdef list opens_of(self, list rows)
    cdef list paths_of(self, list rows)
    cdef object neighbour(self, s64 row)
    cdef list forks(self)
    cdef const u8 *bits(self, u64 *n_bytes) except? NULL


cdef Execution make_execution(Mapped columns, u64 row)
