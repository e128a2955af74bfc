# SPDX-License-Identifier: Apache-2.0
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport s64, u64


cdef class Dependent(Mapped):
    cdef object engine  # Dependencies of libetrace.depend.dependencies, when it was asked for

    cdef list rows_of(self, names)
    cdef list modules_of(self, names)
    cdef tuple answer(self, closures, roots, is_dry, with_graph)
    cdef list rows_of_dependencies(self, names, direct)
    cdef s64 open_of_path(self, u64 path) except? -2
