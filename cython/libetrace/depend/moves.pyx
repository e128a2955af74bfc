# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Renames, hard links and exchanges -> uses of processes of their own.

A move gives a content another name and adds nothing to it. So it is not a use by the process that
moves: what else that process has read does not count for the new name, and it has not read the file.
What a trace calls a use of one moment is the move itself; a longer one is the process's own, which
contains the move. Whoever has the file open for writing goes on under its new name. A use may be that of
several files of one name, one after the other: so every move of the name counts.
"""
from libc.stdlib cimport qsort

from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.core.types cimport s64, u8, u32, u64
from libetrace.depend.uses cimport (
    EXCHANGED, GONE, LINKED, READS, RENAMED, SYMLINKED, WRITES, Other, Span,
)
from libetrace.image.columns cimport Columns, first_of

cdef enum:
    FREE_STEPS = 1 << 24  # beyond one for each open


# Something happened to `of`: a path, whose file got the path `to`, or an open, whose name went away.
cdef struct Event:
    s64 time
    u64 user  # number of the last use that went on so
    u32 of
    u32 to


# A file that is open for writing, by one of its names.
cdef struct Held:
    s64 since
    u32 path


cdef int compare_events(const void *a, const void *b) noexcept nogil:
    cdef const Event *x = <const Event *>a
    cdef const Event *y = <const Event *>b
    if x.of != y.of:
        return (x.of > y.of) - (x.of < y.of)
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    return (x.to > y.to) - (x.to < y.to)


cdef int add_event(Buffer *events, u32 of, u32 to, s64 time) except -1:
    cdef Event event
    event.of, event.to, event.time, event.user = of, to, time, 0
    if buffer_add(events, &event, sizeof(event)) < 0:
        raise MemoryError
    return 0


cdef void sort_events(Buffer *events) noexcept:
    if events.len:
        qsort(events.data, events.len / sizeof(Event), sizeof(Event), compare_events)


# The first event of `of` after `time`.
cdef u64 find_after(const Buffer *events, u32 of, s64 time) noexcept:
    cdef const Event *event = <const Event *>events.data
    cdef u64 low = 0
    cdef u64 high = events.len / sizeof(Event)
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if event[middle].of < of or (event[middle].of == of and event[middle].time <= time):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_moment(const Span *span) noexcept nogil:
    return span != NULL and span.begin == span.end


cdef class Moves:
    def __init__(self, Columns columns):
        self.columns = columns

    def __dealloc__(self):
        buffer_free(&self.gone)
        buffer_free(&self.named)
        buffer_free(&self.waiting)

    cdef void bind(self, Span *spans, Span *later) noexcept:
        self.spans, self.later = spans, later

    # Who makes a symbolic link has not read what it leads to.
    cdef int drop_target(self, u32 execution, u32 target, s64 time) except -1:
        cdef s64 row = self.find_open(execution, target)
        cdef Span *use = self.find_use(<u64>row, time) if row >= 0 else NULL
        if is_moment(use) and use.begin == time:
            use.access &= ~<u8>READS
        return 0

    cdef u32 take(self, const u32 *process_of, u32 n_processes, Buffer *others) except? 0:
        cdef const u8 *kind = self.columns.changes_kind.at
        cdef s64 old
        cdef u64 i
        self.process_of = process_of
        self.n_processes, self.others = n_processes, others
        self.note()
        self.carry_all()
        for i in range(self.columns.changes_open.n):
            if kind[i] == SYMLINKED:  # libetrace.depend.symlinks has its uses
                self.drop_name(self.columns.changes_open.at[i], self.columns.changes_time_ns.at[i])
            elif kind[i] in (RENAMED, LINKED, EXCHANGED) and self.columns.changes_name.at[i] >= 0:
                old = self.find_path(<u32>self.columns.changes_name.at[i])
                if old >= 0:
                    self.move(self.columns.changes_open.at[i], kind[i], <u32>old,
                              self.columns.changes_time_ns.at[i])
        return self.n_processes

    # ---- what goes on under a new name ----

    cdef int note(self) except -1:
        cdef const u32 *open = self.columns.changes_open.at
        cdef const u8 *kind = self.columns.changes_kind.at
        cdef const s64 *time = self.columns.changes_time_ns.at
        cdef s64 old
        cdef u64 i
        for i in range(self.columns.changes_open.n):
            if kind[i] == GONE:
                add_event(&self.gone, open[i], 0, time[i])
            elif kind[i] in (RENAMED, LINKED, EXCHANGED) and self.columns.changes_name.at[i] >= 0:
                old = self.find_path(<u32>self.columns.changes_name.at[i])
                if old >= 0:
                    add_event(&self.named, <u32>old, self.columns.opens_path.at[open[i]], time[i])
        sort_events(&self.gone)
        sort_events(&self.named)
        return 0

    cdef int carry_all(self) except -1:
        cdef const u32 *path = self.columns.opens_path.at
        cdef const u32 *execution = self.columns.opens_execution.at
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef u64 n_others = self.others.len / sizeof(Other)
        cdef Other other
        cdef Span span
        cdef u64 i
        if not self.named.len:
            return 0
        self.budget = self.columns.opens_path.n + FREE_STEPS
        for i in range(self.columns.opens_path.n):
            self.carry(path[i], execution[i], self.spans + i)
        for i in range(self.columns.open_uses_open.n):
            self.carry(path[open[i]], execution[open[i]], self.later + i)
        for i in range(n_others):
            other = (<const Other *>self.others.data)[i]
            span.begin, span.end, span.access = other.begin, other.end, other.kind
            self.carry(other.path, other.execution, &span)
        return 0

    # Follows the files that were open at `path` through the names that they got until the use ended.
    cdef int carry(self, u32 path, u32 execution, const Span *span) except -1:
        cdef Event *named = <Event *>self.named.data
        cdef u64 n = self.named.len / sizeof(Event)
        cdef Held held
        cdef u64 i
        if not span.access & WRITES:
            return 0
        self.user += 1
        held.path, held.since = path, span.begin
        self.waiting.len = 0
        while True:
            i = find_after(&self.named, held.path, held.since)
            while i < n and named[i].of == held.path and named[i].time < span.end and self.budget:
                self.budget -= 1
                if named[i].user != self.user:
                    named[i].user = self.user
                    self.put(named[i].to, execution, self.process_of[execution], WRITES,
                             named[i].time, span.end)
                    self.wait(named[i].to, named[i].time)
                i += 1
            if not self.waiting.len:
                return 0
            self.waiting.len -= sizeof(held)
            held = (<Held *>(self.waiting.data + self.waiting.len))[0]

    cdef int wait(self, u32 path, s64 since) except -1:
        cdef Held held
        held.path, held.since = path, since
        if buffer_add(&self.waiting, &held, sizeof(held)) < 0:
            raise MemoryError
        return 0

    # When the name of an open was last renamed away by then, -1 if never.
    cdef s64 gone_time(self, u32 row, s64 time) noexcept:
        cdef const Event *gone = <const Event *>self.gone.data
        cdef u64 after = find_after(&self.gone, row, time)
        return gone[after - 1].time if after and gone[after - 1].of == row else -1

    # ---- names ----

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
        cdef s64 read = self.source_time(execution, old, kind, time)
        self.drop_name(row, time)
        self.put(old, execution, self.n_processes, READS, read, read)
        self.put(path, execution, self.n_processes, WRITES, time, time)
        self.n_processes += 1
        return 0

    # When the move read the old name: the two halves of a rename or link have stamps of their own. Of an
    # exchange each half reads before the other one writes. The process itself has not read it.
    cdef s64 source_time(self, u32 execution, u32 old, u8 kind, s64 time) noexcept:
        cdef s64 row = self.find_open(execution, old)
        cdef s64 then = time
        cdef Span *use
        if kind == EXCHANGED:
            return time - 1
        if row < 0:
            return time
        use = self.find_use(<u64>row, time)
        if kind == RENAMED:
            then = self.gone_time(<u32>row, time)
            then = time if then < 0 else then
            use = self.find_use(<u64>row, then)
        elif is_moment(use):
            then = use.begin
        if is_moment(use) and use.begin == then:
            use.access &= ~<u8>READS
        return then

    # The moment at which a name was given is no use by the process.
    cdef void drop_name(self, u64 row, s64 time) noexcept:
        cdef Span *made = self.find_use(row, time)
        if is_moment(made) and made.begin == time:
            made.access = 0
