# SPDX-License-Identifier: Apache-2.0
# What renames, hard links and exchanges do to the contents of names.
from libetrace.core.memory cimport Buffer
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport Span
from libetrace.image.columns cimport Columns


cdef class Moves:
    cdef Columns columns
    cdef Span *spans
    cdef Span *later
    cdef const u32 *process_of
    cdef u32 n_processes
    cdef Buffer *others
    cdef Buffer gone  # Event, sorted
    cdef Buffer named  # Event, sorted
    cdef Buffer waiting  # Held
    cdef u64 budget  # steps that may still be taken
    cdef u64 user  # number of a use

    # First uses of opens, and later ones by row of `open_uses`: moves are taken out of them.
    cdef void bind(self, Span *spans, Span *later) noexcept
    cdef int drop_target(self, u32 execution, u32 target, s64 time) except -1
    # Appends what the moves read and write to `others` (Other), each with a process of its own, and
    # takes it from the process that moved. Returns the number of processes.
    cdef u32 take(self, const u32 *process_of, u32 n_processes, Buffer *others) except? 0
    cdef int note(self) except -1
    cdef int wait(self, u32 path, s64 since) except -1
    cdef int carry_all(self) except -1
    cdef int carry(self, u32 path, u32 execution, const Span *span) except -1
    cdef s64 gone_time(self, u32 row, s64 time) noexcept
    cdef Span *find_use(self, u64 row, s64 time) noexcept
    cdef s64 find_open(self, u32 execution, u32 path) noexcept
    cdef s64 find_path(self, u32 string) noexcept
    cdef int move(self, u64 row, u8 kind, u32 old, s64 time) except -1
    cdef int put(self, u32 path, u32 execution, u32 process, u8 kind, s64 begin, s64 end) except -1
    cdef s64 source_time(self, u32 execution, u32 old, u8 kind, s64 time) noexcept
    cdef void drop_name(self, u64 row, s64 time) noexcept
