# SPDX-License-Identifier: Apache-2.0
# Who wrote what and who read it, of one image.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport u32, u64
from libetrace.depend.walk cimport Edges, Walk


cdef class Graph:
    cdef Edges edges
    cdef list views  # keep the columns where they are
    cdef str path  # of the image
    cdef readonly u32 n_paths
    cdef readonly u32 n_executions
    cdef readonly u32 n_processes
    cdef readonly u64 n_opens
    cdef readonly bint is_reversed

    cdef const void *take(self, column, str code, u64 n) except? NULL
    cdef int bind_uses(self, image, tables) except -1
    cdef int bind_lists(self, tables) except -1
    cdef object damage(self, str what)


cdef class Closure:
    cdef Walk walk
    cdef readonly Graph graph
    cdef object roots
    cdef object rules  # keeps the masks alive

    cdef object leave(self, u32 use, u32 path)
    cdef int climb(self, u32 number, list steps) except -1
