# SPDX-License-Identifier: Apache-2.0
# Who wrote what and who read it, of one image.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u32, u64
from libetrace.depend.walk cimport Edges, Walk
from libetrace.image.columns cimport Columns


cdef class Graph:
    cdef Edges edges
    cdef Columns columns
    cdef str path  # of the image
    cdef readonly u32 n_paths
    cdef readonly u32 n_executions
    cdef readonly u32 n_processes
    cdef readonly u64 n_opens
    cdef readonly bint is_reversed
    cdef list later  # opens of the last uses, when they were asked for

    cdef int fit(self, u64 n_elements, u64 n) except -1
    cdef int bind_uses(self) except -1
    cdef int bind_lists(self) except -1
    cdef list find_later(self)
    cdef object damage(self, str what)


cdef class Closure:
    cdef Walk walk
    cdef readonly Graph graph
    cdef object roots
    cdef object rules  # keeps the masks alive

    cdef object leave(self, u32 use, u32 path)
    cdef int climb(self, u32 number, list steps) except -1
