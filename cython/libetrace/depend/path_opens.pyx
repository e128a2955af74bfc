# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Opens by path, and paths by owner, without a Python object for each open.

`PathOpens` reads only the opens of the paths that are asked for, or what the graph in the image knows
of them; what it finds out of executions is kept. Row numbers are checked when they are taken out of a
column: IndexError.
"""
cimport cython
from array import array
from collections import namedtuple
from mmap import MAP_PRIVATE, mmap

from cpython cimport array as c_array
from libc.stdlib cimport qsort

from libetrace.core.types cimport INT64_MAX, s32, s64, u8, u32, u64
from libetrace.image.columns cimport Columns

cdef enum:
    WRITES_BITS = 3  # of opens.mode
    IS_WRITTEN = 2  # of graph_paths.uses
    OWN_PATH_EXISTS = 4
    EXISTS = 0x40
    TYPE_BITS = 0x3c
    LINK = 0x28  # type bits of a symbolic link
    YES = 1  # what is known; 0: not yet
    NO = 2
    ARCHIVES = 3  # of an execution: it takes libraries, but no shared objects
    IS_LOADABLE = 4  # of a path, as `kind_of` says
    IS_PLUGIN = 8

LOADABLE, PLUGIN = IS_LOADABLE, IS_PLUGIN
READS, WRITES = 1, 2
TAKES_ALL, TAKES_ARCHIVES = YES, ARCHIVES


cdef struct Opened:
    s64 time
    u64 row


cdef int compare_opened(const void *a, const void *b) noexcept nogil:
    cdef const Opened *x = <const Opened *>a
    cdef const Opened *y = <const Opened *>b
    if x.time != y.time:
        return (x.time > y.time) - (x.time < y.time)
    return (x.row > y.row) - (x.row < y.row)


@cython.final
cdef class PathOpens:
    """The opens of the paths of an image.

    `kind_of(path)` says whether a path is what ld.so(8) loads: 0, LOADABLE, or LOADABLE | PLUGIN;
    `is_taker(path)` whether a program takes libraries as input. Each is asked once a path.
    `is_named(row)` says whether the command line of an open names what was opened, and
    `taking_of(execution)` gives TAKES_ALL for one that links, TAKES_ARCHIVES for one that compiles,
    else 0.
    """

    cdef object kind_of
    cdef object is_taker
    cdef object is_named
    cdef object taking_of
    cdef Columns columns
    cdef bint is_known  # the image has the table `graph_paths`
    cdef u64 n_paths
    cdef u64 n_opens
    cdef u64 n_executions
    cdef const u64 *path_start
    cdef const u32 *path_open
    cdef const u32 *path
    cdef const u32 *execution
    cdef const u8 *mode
    cdef const s64 *open_ns
    cdef const s64 *close_ns
    cdef const s64 *until_ns
    cdef const u64 *opens_start
    cdef const s32 *binary
    cdef const s32 *parent
    cdef const u8 *modes  # by path
    cdef const u8 *known_uses
    cdef const s32 *known_first
    cdef bytearray programs  # whether a path was run, when that was asked for
    cdef u8[::1] memory  # of the five: pages that are not touched cost nothing
    cdef u8 *paths  # IS_LOADABLE, IS_PLUGIN, NO for neither
    cdef u8 *programs_taking  # by path
    cdef u8 *taking  # by execution
    cdef u8 *rows  # whether ld.so(8) opened it
    cdef u8 *executions  # whether `rows` is known of it

    def __init__(self, image, kind_of=None, is_taker=None, is_named=None, taking_of=None):
        self.kind_of, self.is_taker, self.is_named = kind_of, is_taker, is_named
        self.taking_of = taking_of
        self.bind(Columns(image, is_checked=False))
        n_bytes = 2 * (self.n_paths + self.n_executions) + self.n_opens
        self.memory = mmap(-1, n_bytes + 1, flags=MAP_PRIVATE)
        self.paths = &self.memory[0]
        self.programs_taking = self.paths + self.n_paths
        self.taking = self.programs_taking + self.n_paths
        self.executions = self.taking + self.n_executions
        self.rows = self.executions + self.n_executions

    cdef void bind(self, Columns c) noexcept:
        self.columns = c
        self.n_paths, self.n_opens = c.paths_string.n, c.opens_path.n
        self.n_executions = c.executions_upid.n
        self.path_start, self.path_open = c.paths_opens_start.at, c.path_opens_open.at
        self.path, self.execution = c.opens_path.at, c.opens_execution.at
        self.mode, self.open_ns = c.opens_mode.at, c.opens_open_ns.at
        self.close_ns, self.until_ns = c.opens_close_ns.at, c.opens_until_ns.at
        self.opens_start = c.executions_opens_start.at
        self.binary = c.executions_binary.at
        self.parent = c.executions_parent.at
        self.modes = c.paths_mode.at
        self.known_uses = c.graph_paths_uses.at
        self.known_first = c.graph_paths_first.at
        self.is_known = self.known_uses != NULL and c.graph_paths_uses.n == self.n_paths

    cdef int check_path(self, u64 path) except -1:
        if path >= self.n_paths:
            raise IndexError(path)
        return 0

    cdef int check_execution(self, u64 execution) except -1:
        if execution >= self.n_executions:
            raise IndexError(execution)
        return 0

    # The place of the first open of a path in `path_opens`, and the end of them.
    cdef int span(self, u64 path, u64 *first, u64 *end) except -1:
        self.check_path(path)
        first[0], end[0] = self.path_start[path], self.path_start[path + 1]
        if first[0] > end[0] or end[0] > self.columns.path_opens_open.n:
            raise IndexError(path)
        return 0

    cdef u64 row(self, u64 place) except? 0:
        if self.path_open[place] >= self.n_opens:
            raise IndexError(self.path_open[place])
        return self.path_open[place]

    cdef u64 path_of(self, u64 row) except? 0:
        self.check_path(self.path[row])
        return self.path[row]

    def uses(self):
        """Return a byte for each path: READS, WRITES, both, or 0 for none."""
        cdef u8[::1] found
        cdef u64 row
        out = bytearray(self.n_paths)
        found = out
        if self.is_known:
            for row in range(self.n_paths):
                found[row] = self.known_uses[row] & 3
            return bytes(out)
        for row in range(self.n_opens):
            found[self.path_of(row)] |= 3 if self.mode[row] & 2 else 1 + (self.mode[row] & 1)
        return bytes(out)

    def is_written(self, u64 path):
        """Return whether an open wrote a path."""
        cdef u64 first, end, i
        self.check_path(path)
        if self.is_known:
            return self.known_uses[path] & IS_WRITTEN != 0
        self.span(path, &first, &end)
        for i in range(first, end):
            if self.mode[self.row(i)] & WRITES_BITS:
                return True
        return False

    def first(self, u64 path):
        """Return the row of the first open of a path in time, -1 without one.

        When a program opens a name twice in one go the one that wrote is first.
        """
        cdef u64 first, end, i, row
        cdef s64 best = -1
        self.check_path(path)
        if self.is_known:
            return self.known_first[path]
        self.span(path, &first, &end)
        for i in range(first, end):
            row = self.row(i)
            if best < 0 or self.is_before(row, <u64>best):
                best = row
        return best

    cdef bint is_before(self, u64 row, u64 other) noexcept:
        if self.open_ns[row] != self.open_ns[other]:
            return self.open_ns[row] < self.open_ns[other]
        return self.mode[row] > self.mode[other]

    def is_program(self, u64 path):
        """Return whether an execution ran a path."""
        self.check_path(path)
        if self.programs is None:
            self.programs = self.find_programs()
        return self.programs[path] != 0

    cdef bytearray find_programs(self):
        cdef bytearray out = bytearray(self.n_paths + 1)
        cdef u8[::1] is_program = out
        cdef u64 i
        for i in range(self.n_executions):
            if self.binary[i] >= 0 and <u64>self.binary[i] < self.n_paths:
                is_program[self.binary[i]] = 1
        return out

    def existing(self, u64 path):
        """Yield the rows of opens whose original path was there and no symbolic link."""
        cdef u64 first, end, i, row
        self.check_path(path)
        if self.is_known and not self.known_uses[path] & OWN_PATH_EXISTS:
            return
        self.span(path, &first, &end)
        for i in range(first, end):
            row = self.row(i)
            if self.mode[row] & EXISTS and self.mode[row] & TYPE_BITS != LINK:
                yield row

    def lasting_paths(self):
        """Yield the paths that opens wrote, each once, but for some that are known to be gone."""
        cdef u8[::1] seen = bytearray(self.n_paths + 1)
        cdef u64 row, path
        for path in range(self.n_paths if self.is_known else 0):
            if self.known_uses[path] & IS_WRITTEN and (
                    self.modes[path] or self.known_uses[path] & OWN_PATH_EXISTS):
                yield path
        for row in range(0 if self.is_known else self.n_opens):
            if self.mode[row] & WRITES_BITS:
                path = self.path_of(row)
                if not seen[path]:
                    seen[path] = 1
                    yield path

    # ---- what the dynamic linker opened ----

    cdef u8 kind(self, u64 path) except? 0:
        if not self.paths[path]:
            self.paths[path] = self.kind_of(path) or NO
        return self.paths[path]

    cdef u8 find_taking(self, u64 execution) except 0:
        cdef s64 program = self.binary[execution]
        if program < 0:
            return NO
        cdef u8 known = 0 if self.taking_of is None else self.taking_of(execution)
        if known == YES:
            return YES
        self.check_path(program)
        if not self.programs_taking[program]:
            self.programs_taking[program] = YES if self.is_taker(program) else NO
        return YES if self.programs_taking[program] == YES else known or NO

    # Whether an execution takes libraries as inputs: YES, ARCHIVES or NO. Threads, and children
    # before their first exec, do what the program does that they are of.
    cdef u8 takes(self, u64 execution) except 0:
        cdef u64 row = execution
        cdef u8 found
        self.check_execution(execution)
        while not self.taking[row] and self.binary[row] < 0 and self.parent[row] >= 0:
            self.taking[row] = NO  # ends a ring of parents
            row = self.parent[row]
            self.check_execution(row)
        if not self.taking[row]:
            self.taking[row] = self.find_taking(row)
        found = self.taking[row]
        while execution != row and self.taking[execution] != found:
            self.taking[execution] = found
            execution = self.parent[execution]
        return found

    # Whether an execution opened a file as an input and not to load it.
    cdef bint is_taken(self, u64 row, u8 taking) except -1:
        if taking == ARCHIVES:
            return not self.kind(self.path_of(row)) & IS_LOADABLE
        return taking == YES and not self.is_load(row)

    def is_only_loaded(self, u64 path):
        """Return whether all programs opened a library only to load it, none as an input.

        Interpreters load libraries later (dlopen(3)); linkers and what copies files take them, and
        compilers take archives.
        """
        cdef u64 first, end, i, row
        self.span(path, &first, &end)
        for i in range(first, end):
            row = self.row(i)
            if self.is_taken(row, self.takes(self.execution[row])):
                return False
        return True

    def taken_by(self, executions):
        """Return a byte for each path: 1 when one of these executions took it as an input.

        It reads the opens of these executions only.
        """
        cdef u8[::1] taken
        cdef u64 execution, row
        cdef u8 taking
        out = bytearray(self.n_paths + 1)
        taken = out
        for execution in executions:
            taking = self.takes(execution)
            if taking == NO:
                continue
            self.know_loads(execution)
            for row in range(self.opens_start[execution], self.opens_start[execution + 1]):
                if self.is_taken(row, taking):
                    taken[self.path_of(row)] = 1
        return out

    # Whether an open was ld.so(8)'s: at the start of its program, or after a plugin's.
    cdef bint is_load(self, u64 row) except -1:
        self.know_loads(self.execution[row])
        return self.rows[row] == YES

    cdef int know_loads(self, u64 execution) except -1:
        self.check_execution(execution)
        if not self.executions[execution]:
            self.executions[execution] = YES
            self.find_loads(execution)
        return 0

    cdef int find_loads(self, u64 execution) except -1:
        cdef u64 first = self.opens_start[execution]
        cdef u64 end = self.opens_start[execution + 1]
        cdef bytearray memory
        cdef Opened *opened
        cdef u64 i
        if first > end or end > self.n_opens:
            raise IndexError(execution)
        memory = bytearray((end - first) * sizeof(Opened))
        opened = <Opened *><char *>memory
        for i in range(first, end):
            opened[i - first] = Opened(self.open_ns[i], i)
        qsort(opened, end - first, sizeof(Opened), compare_opened)
        return self.mark_loads(opened, end - first, self.binary[execution] >= 0)

    # What took no time was not a call: a preloaded library has asked ld.so(8) what it loaded.
    cdef bint is_moment(self, u64 row) noexcept:
        return self.close_ns[row] == self.open_ns[row] and self.until_ns[row] <= self.open_ns[row]

    # A run of libraries belongs to ld.so(8) up to the first other file, or to one that is written.
    # `is_loading`: the opens begin with a program.
    cdef int mark_loads(self, const Opened *opened, u64 n, bint is_loading) except -1:
        cdef bint is_recorded = False  # what ld.so(8) loaded; no run says more
        cdef u64 begin = 0  # of the run
        cdef u64 i, row
        cdef u8 kind
        for i in range(n):
            row = opened[i].row
            if self.is_moment(row) and self.kind(self.path_of(row)) & IS_LOADABLE:
                self.rows[row], is_recorded = YES, True
        for i in range(0 if is_recorded else n):
            row = opened[i].row
            kind = 0 if self.mode[row] & WRITES_BITS else self.kind(self.path_of(row))
            if kind & IS_LOADABLE and not is_loading and kind & IS_PLUGIN:
                is_loading, begin = True, i
            if not kind & IS_LOADABLE:
                if is_loading:
                    self.mark_run(opened + begin, i - begin, opened[i].time)
                is_loading = False
        if is_loading and not is_recorded:
            self.mark_run(opened + begin, n - begin, INT64_MAX)
        return 0

    # What is used longer than the run, as libc.so.6 by a linker, is an input, and so is what the
    # command line names.
    cdef int mark_run(self, const Opened *opened, u64 n, s64 end) except -1:
        cdef u64 i, row
        for i in range(n):
            row = opened[i].row
            if max(self.close_ns[row], self.until_ns[row]) <= end and not self.is_named(row):
                self.rows[row] = YES
        return 0


# ---- paths by owner ----
# Opens -> the different paths that each owner opened: commands, compilations, or any other groups.
#
# A counting sort by owner, then a sort of each owner's paths: no Python object for an open. Owners of
# executions are checked here; paths are only compared.


OwnedPaths = namedtuple("OwnedPaths", "start path n_opens")

cdef enum:
    ACCESS = 3  # bits of opens.mode


cdef int compare_paths(const void *a, const void *b) noexcept nogil:
    cdef u32 x = (<const u32 *>a)[0]
    cdef u32 y = (<const u32 *>b)[0]
    return (x > y) - (x < y)


# The owner of an open, -1 for none.
cdef inline s32 owner_of(u32 execution, u8 mode, const s32[::1] owner, u8 left_out) noexcept nogil:
    if mode & ACCESS == left_out or execution >= <u64>owner.shape[0]:
        return -1
    return owner[execution]


# Adds the opens of each owner to start[owner + 1]; -1 for an owner that does not exist.
cdef int count_opens(
    const u32[::1] execution, const u8[::1] mode, const s32[::1] owner, u8 left_out, u64[::1] start
) noexcept nogil:
    cdef Py_ssize_t i
    cdef s32 own
    for i in range(execution.shape[0]):
        own = owner_of(execution[i], mode[i], owner, left_out)
        if <Py_ssize_t>own + 1 >= start.shape[0]:
            return -1
        if own >= 0:
            start[own + 1] += 1
    return 0


cdef void place_paths(
    const u32[::1] path, const u32[::1] execution, const u8[::1] mode, const s32[::1] owner,
    u8 left_out, u64 *place, u32 *paths
) noexcept nogil:
    cdef Py_ssize_t i
    cdef s32 own
    for i in range(path.shape[0]):
        own = owner_of(execution[i], mode[i], owner, left_out)
        if own >= 0:
            paths[place[own]] = path[i]
            place[own] += 1


# Sorts the paths of each owner and keeps each once, in place; returns how many are left.
cdef u64 unite(u32 *paths, u32 *counts, u64[::1] start) noexcept nogil:
    cdef u64 n = 0
    cdef u64 begin = 0
    cdef u64 end, first, i
    cdef Py_ssize_t own
    for own in range(start.shape[0] - 1):
        end, first = start[own + 1], n
        qsort(paths + begin, end - begin, sizeof(u32), compare_paths)
        for i in range(begin, end):
            if n > first and paths[n - 1] == paths[i]:
                counts[n - 1] += 1
            else:
                paths[n], counts[n] = paths[i], 1
                n += 1
        begin, start[own + 1] = end, n
    return n


def owned_paths(tables, const s32[::1] owner, u32 n_owners, u8 left_out):
    """Return OwnedPaths: owner i has the places [start[i], start[i + 1]) of `path` and `n_opens`.

    `tables` have the columns `path`, `execution` and `mode`. `owner` is by execution, -1 for none;
    opens whose access is `left_out` do not count. `path` is sorted within an owner, each path once,
    and `n_opens` says how many opens that were. IndexError for an owner that does not exist.
    """
    cdef u64[::1] start
    cdef const u32[::1] path, execution
    cdef const u8[::1] mode
    cdef u64 n = 0
    cdef u64 i
    cdef c_array.array places, paths, counts
    starts = array("Q", bytes(8 * (<u64>n_owners + 1)))
    start = starts
    columns = [(each["path"], each["execution"], each["mode"]) for each in tables]
    for path, execution, mode in columns:
        if path.shape[0] != execution.shape[0] or path.shape[0] != mode.shape[0]:
            raise IndexError("columns of different lengths")
        if count_opens(execution, mode, owner, left_out, start):
            raise IndexError("no such owner")
    for i in range(n_owners):
        start[i + 1] += start[i]
    n = start[n_owners]
    places = array("Q", starts)
    paths, counts = (c_array.clone(array("I"), n, zero=False) for _ in range(2))
    for path, execution, mode in columns:
        place_paths(path, execution, mode, owner, left_out, <u64 *>places.data.as_voidptr,
                    paths.data.as_uints)
    n = unite(paths.data.as_uints, counts.data.as_uints, start)
    del paths[n:], counts[n:]
    return OwnedPaths(starts, paths, counts)
