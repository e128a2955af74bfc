# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""An image -> the tables of its dependency graph: every use of a file, and lists of them in order.

An open is one use, from its first begin to its last end, and to the end of the execution when the
trace does not say when (a foreign parser's). The table `open_uses` holds the uses of the opens that had
several: the first is the open's, later ones are `others`. An inherited file is used as long as its
execution runs. libetrace.depend.moves has what renames and links do, libetrace.depend.forks what a
process had in memory before it executed, and libetrace.depend.uses sorts them.
"""
from cpython.array cimport array, clone
from libc.stdlib cimport qsort
from libc.string cimport memset

from libetrace.core.errors import Error
from libetrace.depend.pipe_names import find_tokens
from libetrace.depend.symlinks import find_links
from libetrace.image.devices import device_mask
from libetrace.image.header import SCHEMA, group_names

from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.core.types cimport INT64_MAX, s32, s64, u8, u32, u64
from libetrace.depend.forks cimport Forks
from libetrace.depend.moves cimport Moves
from libetrace.depend.uses cimport (
    EXCHANGED, GONE, INHERITED, LINK, READS, WRITES, Ends, Executions, Links, Other, Span, Uses,
    count_lists, deal_links, fill_lists, find_last_contents, number_processes, order_stamps,
)
from libetrace.image.columns cimport Columns, first_of

#: tables of a graph, in the order in which `build_graph` gives them
TABLES = group_names("graph")

cdef enum:
    ACCESS = 3
    BEGUN = 6  # kind of a change
    TYPE_BITS = 0x7c
    FIFO = 0x44  # an open for writing empties no pipe
    IS_DEVICE = 4  # of a path: its opens write nothing
    EXISTS = 0x40
    LINK_MODE = 0x68  # of a symbolic link that exists
    OWN_PATH_EXISTS = 4
    INT32_MAX = 0x7fffffff

cdef array _S64 = array("q")
cdef array _U64 = array("Q")
cdef array _U32 = array("I")
cdef array _S32 = array("i")
cdef array _U8 = array("B")


cdef inline u8 access_of(u8 mode) noexcept nogil:
    cdef u8 access = mode & ACCESS
    if access == 0:
        return READS
    return WRITES if access == 1 else READS | WRITES


cdef inline u8 uses_of(u8 mode) noexcept nogil:
    cdef bint is_there = mode & EXISTS and mode & TYPE_BITS != LINK_MODE
    return access_of(mode) | (OWN_PATH_EXISTS if is_there else 0)


# When a program opens a name twice in one go the one that wrote is first.
cdef inline bint is_before(const s64 *time, const u8 *mode, u64 row, u64 other) noexcept nogil:
    if time[row] != time[other]:
        return time[row] < time[other]
    return mode[row] > mode[other]


cdef inline s64 sum_of(s64 a, s64 b) noexcept nogil:
    a = max(a, 0)
    b = max(b, 0)
    return a + b if a <= INT64_MAX - b else INT64_MAX


# ---- ends ----


cdef struct End:
    s64 time
    bint is_away


cdef int compare_ends(const void *a, const void *b) noexcept nogil:
    cdef const End *x = <const End *>a
    cdef const End *y = <const End *>b
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    return x.is_away - y.is_away


# ---- building ----


cdef class _Builder:
    cdef Columns columns
    cdef object image
    cdef Uses uses
    cdef s64 first  # stamp at which the trace began
    cdef u64 n_paths
    cdef u64 n_executions
    cdef u32 n_processes  # those of links, moves and forks included
    cdef bytearray memory  # of `spans`
    cdef Span *spans  # first use of each open
    cdef Span *later  # by row of `open_uses`
    cdef Buffer others  # Other, in order
    cdef Forks forks
    cdef array begin
    cdef array end
    cdef array access
    cdef array processes  # by execution
    cdef array other_path
    cdef array other_execution
    cdef array other_process
    cdef array other_kind

    def __init__(self, image):
        self.columns = Columns(image)
        self.image = image
        self.n_paths = self.columns.paths_string.n
        self.n_executions = self.columns.executions_upid.n
        self.uses.n_opens = self.columns.opens_path.n
        self.uses.open_path = self.columns.opens_path.at
        self.uses.open_execution = self.columns.opens_execution.at
        self.memory = bytearray(
            (self.uses.n_opens + self.columns.open_uses_open.n + 1) * sizeof(Span))
        self.spans = <Span *><char *>self.memory
        self.later = self.spans + self.uses.n_opens

    def __dealloc__(self):
        buffer_free(&self.others)

    # ---- processes ----

    cdef int number(self, bint wrapped) except -1:
        cdef Executions executions
        executions.upid = self.columns.executions_upid.at
        executions.children_start = self.columns.executions_children_start.at
        executions.child = self.columns.children_execution.at
        executions.flags = self.columns.children_flags.at
        executions.n = <u32>self.n_executions
        executions.wrapper = self.columns.wrappers_execution.at if wrapped else NULL
        self.processes = clone(_U32, self.n_executions, False)
        self.n_processes = number_processes(&executions, self.processes.data.as_uints)
        self.uses.process_of = self.processes.data.as_uints
        return 0

    # ---- uses ----

    cdef int take_uses(self, bint all_programs) except -1:
        cdef u8[::1] is_written = bytearray(self.n_paths + 1)
        cdef Moves moves
        self.mark_written(is_written)
        self.first = self.first_stamp()
        self.take_opens(is_written)
        self.take_open_uses(is_written)
        self.take_pipes()
        self.take_inherited()
        self.take_programs(is_written, all_programs)
        moves = Moves(self.columns)
        moves.bind(self.spans, self.later)
        self.take_links(moves)
        self.n_processes = moves.take(self.uses.process_of, self.n_processes, &self.others)
        self.forks = Forks(self.columns, self.first)
        self.n_processes = self.forks.take(self.spans, self.later, self.uses.process_of,
                                           self.n_processes, &self.others)
        self.take_later()
        self.make_columns()
        return 0

    # The columns of what was collected.
    cdef int make_columns(self) except -1:
        cdef const Other *other = <const Other *>self.others.data
        cdef u64 n_others = self.others.len / sizeof(Other)
        cdef u64 n = self.uses.n_opens + n_others
        cdef s64 *begin
        cdef s64 *end
        cdef u64 i
        if n > INT32_MAX:
            raise Error(f"{self.image.path}: {n} uses of files, and a graph holds {INT32_MAX}")
        self.uses.n = n
        self.begin, self.end = clone(_S64, n, False), clone(_S64, n, False)
        self.access = clone(_U8, n, False)
        self.other_path = clone(_U32, n_others, False)
        self.other_execution = clone(_U32, n_others, False)
        self.other_process = clone(_U32, n_others, False)
        self.other_kind = clone(_U8, n_others, False)
        begin, end = <s64 *>self.begin.data.as_voidptr, <s64 *>self.end.data.as_voidptr
        for i in range(self.uses.n_opens):
            begin[i], end[i] = self.spans[i].begin, self.spans[i].end
            self.access.data.as_uchars[i] = self.spans[i].access
        begin += self.uses.n_opens
        end += self.uses.n_opens
        for i in range(n_others):
            begin[i], end[i] = other[i].begin, other[i].end
            self.access.data.as_uchars[self.uses.n_opens + i] = other[i].kind & (READS | WRITES)
            self.other_path.data.as_uints[i] = other[i].path
            self.other_execution.data.as_uints[i] = other[i].execution
            self.other_process.data.as_uints[i] = other[i].process
            self.other_kind.data.as_uchars[i] = other[i].kind
        self.uses.begin = <const s64 *>self.begin.data.as_voidptr
        self.uses.end = <const s64 *>self.end.data.as_voidptr
        self.uses.other_path = self.other_path.data.as_uints
        self.uses.other_execution = self.other_execution.data.as_uints
        self.uses.other_process = self.other_process.data.as_uints
        self.uses.other_kind = self.other_kind.data.as_uchars
        return 0

    # Data written to devices is discarded.
    cdef int mark_written(self, u8[::1] is_written) except -1:
        cdef const u8 *modes = self.columns.opens_mode.at
        cdef const u8 *inherited = self.columns.inherited_mode.at
        cdef const u32 *path = self.columns.inherited_path.at
        cdef u64 i
        for i in range(self.uses.n_opens):
            if access_of(modes[i]) & WRITES:
                is_written[self.uses.open_path[i]] = 1
        self.forget_devices(is_written)
        for i in range(self.columns.inherited_path.n):
            if access_of(inherited[i]) & WRITES:
                is_written[path[i]] |= 2
        return 0

    cdef int forget_devices(self, u8[::1] is_written) except -1:
        cdef const u8[::1] devices = device_mask(self.image)
        cdef u64 i
        for i in range(self.n_paths):
            if devices[i]:
                is_written[i] = IS_DEVICE
        return 0

    # Opens have stamps of the clock, executions count from the first one: the smallest difference
    # is the first stamp, or a little later when no execution began with an open.
    cdef s64 first_stamp(self) except? 0:
        cdef const s64 *begin = self.columns.opens_open_ns.at
        cdef const s64 *start = self.columns.executions_start_ns.at
        cdef s64 smallest = INT64_MAX
        cdef u64 i
        for i in range(self.uses.n_opens):
            if begin[i] > 0 and start[self.uses.open_execution[i]] >= 0:
                smallest = min(smallest, begin[i] - start[self.uses.open_execution[i]])
        return max(smallest, 0) if smallest != INT64_MAX else 0

    cdef s64 start_of(self, u32 execution) noexcept:
        return sum_of(self.first, self.columns.executions_start_ns.at[execution])

    cdef s64 end_of(self, u32 execution) noexcept:
        return sum_of(self.start_of(execution),
                      self.columns.executions_elapsed_ns.at[execution])

    cdef int take_opens(self, const u8[::1] is_written) except -1:
        cdef const s64 *opened = self.columns.opens_open_ns.at
        cdef const s64 *closed = self.columns.opens_close_ns.at
        cdef const s64 *until = self.columns.opens_until_ns.at
        cdef Span *span
        cdef u64 i
        for i in range(self.uses.n_opens):
            span = self.spans + i
            span.access = self.way(is_written, self.uses.open_path[i], self.columns.opens_mode.at[i])
            span.begin = max(opened[i], 0)
            span.end = max(closed[i], span.begin)
            if until[i] >= 0:
                span.end = max(until[i], span.end)
            else:
                span.end = max(self.end_of(self.uses.open_execution[i]), span.end)
        return self.take_first_uses()

    # READS and WRITES: those of a mode, but what is written to a device is discarded.
    cdef u8 way(self, const u8[::1] is_written, u32 path, u8 mode) noexcept:
        cdef u8 access = access_of(mode)
        return access & ~<u8>WRITES if is_written[path] & IS_DEVICE else access

    cdef int take_first_uses(self) except -1:
        cdef const u32 *open = self.columns.changes_open.at
        cdef const u8 *kind = self.columns.changes_kind.at
        cdef const s64 *time = self.columns.changes_time_ns.at
        cdef Span *span
        cdef u64 i
        for i in range(self.columns.changes_open.n):
            if kind[i] == BEGUN and time[i] >= 0:
                span = self.spans + open[i]
                span.begin = min(span.begin, time[i])
        return 0

    # The uses of opens that had several: the first is the open's.
    cdef int take_open_uses(self, const u8[::1] is_written) except -1:
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef const s64 *begin = self.columns.open_uses_begin_ns.at
        cdef const s64 *end = self.columns.open_uses_end_ns.at
        cdef Span span
        cdef u64 i
        for i in range(self.columns.open_uses_open.n):
            span.begin = max(begin[i], 0)
            span.end = max(span.begin, end[i])
            span.access = self.way(is_written, self.uses.open_path[open[i]],
                                   self.columns.open_uses_mode.at[i])
            if self.is_later(i):
                self.later[i] = span
            else:
                self.spans[open[i]] = span
        return 0

    cdef int take_pipes(self) except -1:
        cdef u64 i
        for path in find_tokens(self.image):
            for i in range(self.columns.paths_opens_start.at[<u64>path],
                           self.columns.paths_opens_start.at[<u64>path + 1]):
                self.drop_open(self.columns.path_opens_open.at[i])
        return 0

    cdef int drop_open(self, u32 row) except -1:
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef u64 i = first_of(self.columns.open_uses_open, row)
        self.spans[row].access = 0
        while i < self.columns.open_uses_open.n and open[i] == row:
            self.later[i].access = 0
            i += 1
        return 0

    cdef int put(self, u32 path, u32 execution, u32 process, u8 kind, s64 begin,
                 s64 end) except -1:
        cdef Other other
        other.path, other.execution, other.process = path, execution, process
        other.kind, other.begin, other.end = kind, begin, end
        if buffer_add(&self.others, &other, sizeof(other)) < 0:
            raise MemoryError
        return 0

    # A program reads its standard input and writes the other two, whatever else the open file
    # description allows: one that reads back what it wrote there opens or copies it itself.
    cdef int take_inherited(self) except -1:
        cdef const u32 *path = self.columns.inherited_path.at
        cdef const u32 *execution = self.columns.inherited_execution.at
        cdef const u8 *mode = self.columns.inherited_mode.at
        cdef u8 way
        cdef u64 i
        for i in range(self.columns.inherited_path.n):
            way = READS if self.columns.inherited_descriptor.at[i] == 0 else WRITES
            self.put(path[i], execution[i], self.uses.process_of[execution[i]],
                     access_of(mode[i]) & way | INHERITED, self.start_of(execution[i]),
                     self.end_of(execution[i]))
        return 0

    # Programs are read as they start: all, or those that the build wrote.
    cdef int take_programs(self, const u8[::1] is_written, bint all_programs) except -1:
        cdef const s32 *binary = self.columns.executions_binary.at
        cdef s64 start
        cdef u32 row
        for row in range(<u32>self.n_executions):
            if is_program(binary[row], is_written, all_programs):
                start = self.start_of(row)
                self.put(<u32>binary[row], row, self.uses.process_of[row], READS, start, start)
        return 0

    # Each writes its name from when it is made until something else gets that name, and reads its
    # target as long as the trace lasts: whatever that becomes, the link stands for it.
    cdef int take_links(self, Moves moves) except -1:
        cdef s64 last = self.last_end()
        cdef s64 begin, end
        for path, execution, target, time, name_end in zip(*find_links(self.image)):
            begin = max(time, 0)
            end = last if name_end < 0 else min(last, <s64>name_end - 1)
            self.put(path, execution, self.n_processes, WRITES | LINK, begin, max(end, begin))
            if target >= 0:
                moves.drop_target(execution, target, time)
                self.put(target, execution, self.n_processes, READS | LINK, begin, max(last, begin))
            self.n_processes += 1
        return 0

    cdef s64 last_end(self) noexcept:
        cdef const Other *other = <const Other *>self.others.data
        cdef s64 last = 0
        cdef u64 i
        for i in range(self.uses.n_opens):
            last = max(last, self.spans[i].end)
        for i in range(self.others.len / sizeof(Other)):
            last = max(last, other[i].end)
        return last

    cdef bint is_later(self, u64 i) noexcept:
        cdef const u32 *open = self.columns.open_uses_open.at
        return i > 0 and open[i] == open[i - 1]

    # The later uses of opens are the last of all.
    cdef int take_later(self) except -1:
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef u32 execution
        cdef u64 i
        for i in range(self.columns.open_uses_open.n):
            if self.is_later(i):
                execution = self.uses.open_execution[open[i]]
                self.put(self.uses.open_path[open[i]], execution, self.uses.process_of[execution],
                         self.later[i].access, self.later[i].begin, self.later[i].end)
        return 0

    # ---- tables ----

    # The start of each owner's list and the lists themselves: rows of uses.
    cdef tuple deal(self, u8 wanted, bint by_path, array order):
        cdef u64 n_owners = self.n_paths if by_path else self.n_processes
        cdef array start = clone(_U64, n_owners + 1, True)
        cdef u64 *starts = <u64 *>start.data.as_voidptr
        cdef const u8 *access = self.access.data.as_uchars
        cdef array rows
        cdef u64 n
        with nogil:
            n = count_lists(&self.uses, access, wanted, by_path, starts, n_owners)
        rows = clone(_U32, n, False)
        with nogil:
            fill_lists(&self.uses, access, wanted, by_path, order.data.as_uints, starts,
                       rows.data.as_uints)
        return start, rows

    cdef array order(self, bint is_mirrored):
        cdef array order = clone(_U32, self.uses.n, False)
        cdef const s64 *stamps = self.uses.end if is_mirrored else self.uses.begin
        cdef int status
        with nogil:
            status = order_stamps(stamps, self.uses.n, is_mirrored, order.data.as_uints)
        if status < 0:
            raise MemoryError
        return order

    # Pipes by the process that reads them, or that writes to them, and forks by child or parent.
    cdef tuple links(self, bint of_writers):
        cdef Links links
        cdef array start = clone(_U64, <u64>self.n_processes + 1, True)
        cdef array own, other, process, time
        self.forks.fill(&links)
        own, other = clone(_U32, links.n, False), clone(_U32, links.n, False)
        process, time = clone(_U32, links.n, False), clone(_S64, links.n, False)
        with nogil:
            deal_links(&links, self.n_processes, of_writers, <u64 *>start.data.as_voidptr,
                       own.data.as_uints, other.data.as_uints, process.data.as_uints,
                       <s64 *>time.data.as_voidptr)
        return start, own, other, process, time

    # (first, uses) of all paths.
    cdef tuple openings(self):
        cdef array first = clone(_S32, self.n_paths, True)
        cdef array uses = clone(_U8, self.n_paths, True)
        cdef u8 *used = uses.data.as_uchars
        cdef s32 *firsts = <s32 *>first.data.as_voidptr
        cdef const s64 *time = self.columns.opens_open_ns.at
        cdef const u8 *mode = self.columns.opens_mode.at
        cdef u32 path
        cdef u64 i
        with nogil:
            memset(firsts, 0xff, self.n_paths * sizeof(s32))  # NONE
            for i in range(self.uses.n_opens):
                path = self.uses.open_path[i]
                used[path] |= uses_of(mode[i])
                if firsts[path] < 0 or is_before(time, mode, i, firsts[path]):
                    firsts[path] = <s32>i
        return first, uses

    # (start, time, is_away) of all paths.
    cdef tuple ends(self):
        cdef const u32 *open = self.columns.changes_open.at
        cdef const u8 *kind = self.columns.changes_kind.at
        cdef const u8 *modes = self.columns.paths_mode.at
        cdef const s64 *time = self.columns.changes_time_ns.at
        cdef array start = clone(_U64, self.n_paths + 1, True)
        cdef u64 *starts = <u64 *>start.data.as_voidptr
        cdef u64 n_changes = self.columns.changes_open.n
        cdef bytearray memory
        cdef End *found
        cdef u32 path
        cdef u64 i
        for i in range(n_changes):
            path = self.uses.open_path[open[i]]
            starts[path] += is_end(kind[i], modes[path])
        for i in range(1, self.n_paths + 1):
            starts[i] += starts[i - 1]
        memory = bytearray(starts[self.n_paths] * sizeof(End))
        found = <End *><char *>memory
        i = n_changes
        while i:
            i -= 1
            path = self.uses.open_path[open[i]]
            if is_end(kind[i], modes[path]):
                starts[path] -= 1
                found[starts[path]].time = time[i]
                found[starts[path]].is_away = kind[i] in (GONE, EXCHANGED)
        return (start, *sorted_ends(found, starts, self.n_paths))

    cdef dict tables(self):
        cdef array forward = self.order(False)
        cdef array backward = self.order(True)
        cdef array last = clone(_U32, self.n_paths, False)
        cdef array write_start, writes, end_start, time, is_away
        cdef Ends ends
        write_start, writes = self.deal(WRITES, True, forward)
        read_start, reads = self.deal(READS, True, backward)
        own_read_start, own_reads = self.deal(READS, False, forward)
        own_write_start, own_writes = self.deal(WRITES, False, backward)
        end_start, time, is_away = self.ends()
        source_start, *sources = self.links(False)
        target_start, *targets = self.links(True)
        ends.start = <const u64 *>end_start.data.as_voidptr
        ends.time = <const s64 *>time.data.as_voidptr
        ends.is_away = is_away.data.as_uchars
        with nogil:
            find_last_contents(&ends, &self.uses, <u32>self.n_paths,
                               <const u64 *>write_start.data.as_voidptr, writes.data.as_uints,
                               last.data.as_uints)
        paths = (write_start, read_start, end_start, last, *self.openings())
        processes = (own_read_start, own_write_start, source_start, target_start)
        others = (self.other_path, self.other_execution, self.other_process, self.other_kind)
        made = ((self.begin, self.end), others, (self.processes,), paths, processes, (writes,),
                (reads,), (own_reads,), (own_writes,), (time, is_away), sources, targets)
        return {
            name: dict(zip(SCHEMA[name].columns, columns, strict=True))
            for name, columns in zip(TABLES, made, strict=True)
        }


cdef inline bint is_program(s32 binary, const u8[::1] is_written, bint all_programs) noexcept:
    return binary >= 0 and (all_programs or is_written[binary] & ~<u8>IS_DEVICE != 0)


cdef inline bint is_end(u8 kind, u8 mode) noexcept nogil:
    return 1 <= kind != BEGUN and mode & TYPE_BITS != FIFO


# (time, is_away) of the ends, those of each path in order of time.
cdef tuple sorted_ends(End *found, const u64 *start, u64 n_paths):
    cdef array time = clone(_S64, start[n_paths], False)
    cdef array is_away = clone(_U8, start[n_paths], False)
    cdef u64 i
    for i in range(n_paths):
        if start[i + 1] - start[i] > 1:
            qsort(found + start[i], start[i + 1] - start[i], sizeof(End), compare_ends)
    for i in range(start[n_paths]):
        (<s64 *>time.data.as_voidptr)[i] = found[i].time
        is_away.data.as_uchars[i] = found[i].is_away
    return time, is_away


def build_graph(image, *, bint wrapped=False, bint programs=False):
    """Return the tables of the graph of an image: {table: {column: array}}.

    `wrapped` takes a shell and all it started as one process (table `wrappers`). A program counts
    as read by its execution when the build wrote it, with `programs` always. One pass over `opens`.
    ImageError for a damaged image.
    """
    cdef _Builder builder = _Builder(image)
    builder.number(wrapped)
    builder.take_uses(programs)
    return builder.tables()
