# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Forks -> links between processes: a child goes on with its parent's memory until it executes.

What it writes before that depends on what the parent had read before the fork. A child that executes
another program afterwards is two processes: what it used before has a process of its own, which alone
is linked to the parent. A file that is still open at the exec is the new program's: a shell opens it
and writes nothing.
"""
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.core.types cimport s32, s64, u8, u32, u64
from libetrace.depend.uses cimport READS, WRITES, Link, Links, Other, Span
from libetrace.image.columns cimport Columns, first_of

cdef enum:
    NO_TIME = -1


cdef class Forks:
    def __init__(self, Columns columns, s64 first):
        cdef u64 n = columns.executions_upid.n
        self.columns = columns
        self.first = first
        self.n = <u32>n
        self.memory = bytearray((n + 1) * (sizeof(s64) + sizeof(u32) + sizeof(u8)))
        self.forked = <s64 *><char *>self.memory
        self.node = <u32 *>(self.forked + n)
        self.is_needed = <u8 *>(self.node + n)

    def __dealloc__(self):
        buffer_free(&self.links)

    cdef u32 take(self, Span *spans, Span *later, const u32 *process_of, u32 n_processes,
                  Buffer *others) except? 0:
        cdef u32 row
        self.spans, self.later, self.process_of = spans, later, process_of
        self.find_times()
        self.find_needed(others)
        for row in range(self.n):
            self.node[row] = process_of[row]
            if self.is_needed[row] and self.executes(row):
                self.node[row] = n_processes
                self.copy_uses(row, n_processes, others)
                n_processes += 1
        self.copy_others(others)
        self.link_forks()
        self.link_pipes()
        return n_processes

    cdef int fill(self, Links *links) except -1:
        links.all = <const Link *>self.links.data
        links.n = self.links.len / sizeof(Link)
        return 0

    # ---- executions ----

    # Whether it is what a process did before its first exec.
    cdef bint is_first(self, u32 row) noexcept:
        return self.columns.executions_index.at[row] == 0

    cdef bint executes(self, u32 row) noexcept:
        cdef const s64 *upid = self.columns.executions_upid.at
        return row + 1 < self.n and upid[row + 1] == upid[row]

    cdef s64 exec_time(self, u32 row) noexcept:
        return self.first + max(self.columns.executions_start_ns.at[row + 1], 0)

    cdef void find_times(self) noexcept:
        cdef const s64 *time = self.columns.fork_times_time_ns.at
        cdef const s32 *child = self.columns.children_execution.at
        cdef u32 row
        cdef u64 i
        for row in range(self.n):
            self.forked[row] = self.first + max(self.columns.executions_start_ns.at[row], 0)
        for i in range(self.columns.fork_times_time_ns.n):
            if child[i] >= 0 and time[i] >= 0:
                self.forked[child[i]] = min(self.forked[child[i]], time[i])

    # ---- who needs its parent's memory ----

    cdef void need(self, u32 row) noexcept:
        cdef s32 at = <s32>row
        while at >= 0 and self.is_first(<u32>at) and not self.is_needed[at]:
            self.is_needed[at] = True
            at = self.columns.executions_parent.at[at]

    # Whether a use was over before the program was another one.
    cdef bint is_memory(self, u32 row, const Span *span) noexcept:
        return not self.executes(row) or span.end < self.exec_time(row)

    cdef void find_needed(self, const Buffer *others) noexcept:
        cdef const Other *other = <const Other *>others.data
        cdef const u32 *opens = self.columns.opens_execution.at
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef const u64 *readers = self.columns.executions_readers_start.at
        cdef u32 row
        cdef u64 i
        for i in range(self.columns.opens_path.n):
            if self.spans[i].access & WRITES and self.is_first(opens[i]) and self.is_memory(
                    opens[i], self.spans + i):
                self.need(opens[i])
        for i in range(self.columns.open_uses_open.n):
            row = opens[open[i]]
            if self.later[i].access & WRITES and self.is_first(row) and self.is_memory(
                    row, self.later + i):
                self.need(row)
        for i in range(others.len / sizeof(Other)):
            row = other[i].execution
            if other[i].kind & WRITES and other[i].process == self.process_of[row] \
                    and self.is_first(row) and (
                        not self.executes(row) or other[i].end < self.exec_time(row)):
                self.need(row)
        for row in range(self.n):
            if readers[row] < readers[row + 1]:
                self.need(row)

    # ---- what a process did before it executed ----

    cdef int copy_uses(self, u32 row, u32 process, Buffer *others) except -1:
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef u64 first = self.columns.executions_opens_start.at[row]
        cdef u64 end = self.columns.executions_opens_start.at[row + 1]
        cdef u64 use = first_of(self.columns.open_uses_open, first)
        cdef u64 i
        for i in range(first, end):
            self.copy_use(i, process, self.spans + i, others)
            while use < self.columns.open_uses_open.n and open[use] == i:
                if self.later[use].access:
                    self.copy_use(i, process, self.later + use, others)
                use += 1
        return 0

    cdef int copy_use(self, u64 open, u32 process, const Span *span, Buffer *others) except -1:
        cdef u32 row = self.columns.opens_execution.at[open]
        cdef Other other
        other.kind = span.access & READS
        if self.is_memory(row, span):
            other.kind = span.access
        if not other.kind or span.begin >= self.exec_time(row):
            return 0
        other.path, other.execution, other.process = self.columns.opens_path.at[open], row, process
        other.begin, other.end = span.begin, span.end
        if buffer_add(others, &other, sizeof(other)) < 0:
            raise MemoryError
        return 0

    # Of uses beyond those of opens, what goes on under another name (libetrace.depend.moves).
    cdef int copy_others(self, Buffer *others) except -1:
        cdef u64 n = others.len / sizeof(Other)
        cdef Other other
        cdef u64 i
        for i in range(n):
            other = (<const Other *>others.data)[i]
            if other.process != self.process_of[other.execution] \
                    or self.node[other.execution] == other.process:
                continue
            if other.kind & WRITES and other.end < self.exec_time(other.execution):
                other.process = self.node[other.execution]
                if buffer_add(others, &other, sizeof(other)) < 0:
                    raise MemoryError
        return 0

    # ---- links ----

    cdef int link(self, u32 reader, u32 writer, u32 reader_process, u32 writer_process,
                  s64 time) except -1:
        cdef Link link
        link.reader, link.writer, link.time = reader, writer, time
        link.reader_process, link.writer_process = reader_process, writer_process
        if buffer_add(&self.links, &link, sizeof(link)) < 0:
            raise MemoryError
        return 0

    cdef int link_forks(self) except -1:
        cdef const s32 *parent = self.columns.executions_parent.at
        cdef u32 row
        for row in range(self.n):
            if self.is_needed[row] and parent[row] >= 0 \
                    and self.node[row] != self.node[parent[row]]:
                self.link(row, <u32>parent[row], self.node[row], self.node[parent[row]],
                          self.forked[row])
        return 0

    cdef int link_pipes(self) except -1:
        cdef const u64 *readers = self.columns.executions_readers_start.at
        cdef const u32 *reader = self.columns.pipe_readers_execution.at
        cdef u32 row
        cdef u64 i
        for row in range(self.n):
            for i in range(readers[row], readers[row + 1]):
                self.link(reader[i], row, self.process_of[reader[i]], self.node[row], NO_TIME)
                if self.node[reader[i]] != self.process_of[reader[i]]:
                    self.link(reader[i], row, self.node[reader[i]], self.node[row], NO_TIME)
        return 0
