# SPDX-License-Identifier: Apache-2.0
from libetrace.image.mapped cimport Mapped
from libetrace.core.types cimport s64, u64


cdef class Dependent(Mapped):
    cdef dict graphs  # of libetrace.depend.graph: by whether shells and what they started are one

    cdef object close(self, names, left_out, modules, wrapped, ordered, pipes)
    cdef tuple answer(self, closure, is_dry, with_graph)
    cdef list rows_of_modules(self, paths)
    cdef list rows_of_dependencies(self, paths, bint direct)
    cdef s64 open_of_path(self, u64 path) except? -2
