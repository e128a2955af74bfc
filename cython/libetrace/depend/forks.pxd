# SPDX-License-Identifier: Apache-2.0
# What a process had in memory from the fork to its first exec, and links between processes.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Links, Span
from libetrace.image.columns cimport Columns


cdef class Forks:
    cdef Columns columns
    cdef s64 first  # stamp at which the trace began
    cdef u32 n  # executions
    cdef Span *spans
    cdef Span *later
    cdef const u32 *process_of
    cdef object memory
    cdef s64 *forked  # by execution: stamp of the fork that made it
    cdef u32 *node  # its process before its first exec
    cdef u8 *is_needed  # it wrote something before its first exec, or a child of it did
    cdef Buffer links  # Link

    # Appends to `others` what those processes used that later executed another program: it counts for
    # a process of its own, too. Returns the number of processes.
    cdef u32 take(self, Span *spans, Span *later, const u32 *process_of, u32 n_processes,
                  Buffer *others) except? 0
    # Pipes and forks, after `take`.
    cdef int fill(self, Links *links) except -1
    cdef bint is_first(self, u32 row) noexcept
    cdef bint executes(self, u32 row) noexcept
    cdef s64 exec_time(self, u32 row) noexcept
    cdef void find_times(self) noexcept
    cdef void need(self, u32 row) noexcept
    cdef bint is_memory(self, u32 row, const Span *span) noexcept
    cdef void find_needed(self, const Buffer *others) noexcept
    cdef int copy_uses(self, u32 row, u32 process, Buffer *others) except -1
    cdef int copy_use(self, u64 open, u32 process, const Span *span, Buffer *others) except -1
    cdef int copy_others(self, Buffer *others) except -1
    cdef int link(self, u32 reader, u32 writer, u32 reader_process, u32 writer_process,
                  s64 time) except -1
    cdef int link_forks(self) except -1
    cdef int link_pipes(self) except -1
