# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Renames, hard links and exchanges -> uses of processes of their own.

A move gives a content another name and adds nothing to it. So it is not a use by the process that
moves: what else that process has read does not count for the new name, and it has not read the file. A use of the
old name that is open for writing goes on as one of the new name. What a trace calls a use of one moment
is the move itself; a longer one is the process's own, which contains the move.
"""
from libetrace.core.memory cimport Buffer, buffer_add
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport (
    EXCHANGED, LINKED, READS, RENAMED, SYMLINKED, WRITES, Other, Span,
)
from libetrace.image.columns cimport Columns, first_of


cdef inline bint is_moment(const Span *span) noexcept nogil:
    return span != NULL and span.begin == span.end


cdef class Moves:
    def __init__(self, Columns columns):
        self.columns = columns

    cdef u32 take(self, Span *spans, Span *later, const u32 *process_of, u32 n_processes,
                  Buffer *others) except? 0:
        cdef const u8 *kind = self.columns.changes_kind.at
        cdef s64 old
        cdef u64 i
        self.spans, self.later, self.process_of = spans, later, process_of
        self.n_processes, self.others = n_processes, others
        for i in range(self.columns.changes_open.n):
            if kind[i] == SYMLINKED:
                self.drop_link(self.columns.changes_open.at[i], self.columns.changes_time_ns.at[i])
            elif kind[i] in (RENAMED, LINKED, EXCHANGED) and self.columns.changes_name.at[i] >= 0:
                old = self.find_path(<u32>self.columns.changes_name.at[i])
                if old >= 0:
                    self.move(self.columns.changes_open.at[i], kind[i], <u32>old,
                              self.columns.changes_time_ns.at[i])
        return self.n_processes

    # The row of a path by its string: both are in order of bytes.
    cdef s64 find_path(self, u32 string) noexcept:
        cdef u64 row = first_of(self.columns.paths_string, string)
        if row < self.columns.paths_string.n and self.columns.paths_string.at[row] == string:
            return <s64>row
        return -1

    # The last use of an open that began by then, NULL without one.
    cdef Span *find_use(self, u64 row, s64 time) noexcept:
        cdef const s64 *begin = self.columns.open_uses_begin_ns.at
        cdef u64 first = first_of(self.columns.open_uses_open, row)
        cdef u64 low = first + 1
        cdef u64 high = first_of(self.columns.open_uses_open, row + 1)
        cdef u64 middle
        while low < high:
            middle = low + (high - low) / 2
            if begin[middle] <= time:
                low = middle + 1
            else:
                high = middle
        if low > first + 1:
            return self.later + (low - 1)
        return self.spans + row if self.spans[row].begin <= time else NULL

    # The open of a path by its own name, -1 when the execution has none.
    cdef s64 find_open(self, u32 execution, u32 path) noexcept:
        cdef const u32 *original = self.columns.opens_original.at
        cdef const u32 *opened = self.columns.opens_path.at
        cdef u32 name = self.columns.paths_string.at[path]
        cdef u64 low = self.columns.executions_opens_start.at[execution]
        cdef u64 end = self.columns.executions_opens_start.at[execution + 1]
        cdef u64 high = end
        cdef u64 middle
        while low < high:
            middle = low + (high - low) / 2
            if original[middle] < name or (original[middle] == name and opened[middle] < path):
                low = middle + 1
            else:
                high = middle
        if low < end and original[low] == name and opened[low] == path:
            return <s64>low
        return -1

    cdef int put(self, u32 path, u32 execution, u32 process, u8 kind, s64 begin,
                 s64 end) except -1:
        cdef Other other
        other.path, other.execution, other.process = path, execution, process
        other.kind, other.begin, other.end = kind, begin, end
        if buffer_add(self.others, &other, sizeof(other)) < 0:
            raise MemoryError
        return 0

    # `row`: the open of the new name, `old`: the path of the other one.
    cdef int move(self, u64 row, u8 kind, u32 old, s64 time) except -1:
        cdef u32 path = self.columns.opens_path.at[row]
        cdef u32 execution = self.columns.opens_execution.at[row]
        cdef Span *made = self.find_use(row, time)
        cdef s64 read = self.source_time(execution, old, path, kind, time)
        if is_moment(made) and made.begin == time:
            made.access = 0
        self.put(old, execution, self.n_processes, READS, read, read)
        self.put(path, execution, self.n_processes, WRITES, time, time)
        self.n_processes += 1
        return 0

    # When the move read the old name: its half of a rename has a stamp of its own. Of an exchange each
    # half reads before the other one writes.
    cdef s64 source_time(self, u32 execution, u32 old, u32 path, u8 kind, s64 time) except? -1:
        cdef s64 row = self.find_open(execution, old)
        cdef Span *use = self.find_use(<u64>row, time) if row >= 0 else NULL
        if use == NULL:
            return time
        if use.begin < time < use.end and use.access & WRITES:
            self.put(path, execution, self.process_of[execution], WRITES, time, use.end)
        if kind == EXCHANGED:
            return time - 1
        if is_moment(use):
            use.access &= ~<u8>READS
            return use.begin
        return time

    # The graph has the uses of a symbolic link already (libetrace.depend.symlinks).
    cdef void drop_link(self, u64 row, s64 time) noexcept:
        cdef Span *made = self.find_use(row, time)
        if is_moment(made) and made.begin == time:
            made.access = 0
