# SPDX-License-Identifier: Apache-2.0
# Who wrote what and who read it, of one image.
from libetrace.core.memory cimport Buffer
from libetrace.depend.raw_uses cimport (
    ChangeColumns, Devices, ExecutionColumns, InheritedColumns, LinkColumns, OpenColumns,
)
from libetrace.core.types cimport u8, u32, u64
from libetrace.depend.uses cimport RawUse, Use
from libetrace.depend.walk cimport Edges, Walk


cdef class _UseColumns:
    cdef OpenColumns opens
    cdef InheritedColumns inherited
    cdef ExecutionColumns executions
    cdef ChangeColumns changes
    cdef LinkColumns links
    cdef Devices devices
    cdef u32 n_paths
    cdef object tables

    cdef int take_executions(self, table, u64 n_paths) except -1
    cdef int take_opens(self, table, u64 n_paths) except -1
    cdef int take_inherited(self, table, u64 n_paths) except -1
    cdef int take_changes(self, table) except -1
    cdef int take_links(self, links) except -1


cdef class _RawUses:
    cdef RawUse *raw
    cdef u64 n


cdef class Graph:
    cdef Edges edges
    cdef u32 *process_of  # by execution
    cdef readonly u32 n_paths
    cdef readonly u32 n_executions
    cdef readonly u32 n_processes
    cdef readonly u64 n_opens
    cdef readonly u64 n_inherited
    cdef readonly bint is_reversed
    cdef readonly list links  # (path, execution, target) of symbolic links that the build made

    cdef int number(self, tables, bint wrapped) except -1
    cdef int link_pipes(self, tables) except -1
    cdef int list_uses(self, image, links, bint all_programs) except -1
    cdef int find_ends(self, _UseColumns columns, _RawUses uses) except -1
    cdef int deal_uses(self, _RawUses uses) except -1


cdef class Closure:
    cdef Walk walk
    cdef readonly Graph graph
    cdef object roots
    cdef object rules  # keeps the masks alive

    cdef object rows(self, Buffer *numbers, const Use *uses)
    cdef object leave(self, u64 use, u32 path)
    cdef int climb(self, u32 number, list steps) except -1
