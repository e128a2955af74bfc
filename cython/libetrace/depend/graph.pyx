# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The tables of an image -> who wrote and read what; questions about it (docs/dependencies.md).

Every row number in the columns is checked here, once, before anything follows it.
"""
from array import array

from libetrace.depend.symlinks import find_devices, find_links

cimport cython
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy

from libetrace.depend.content_trees cimport trees_free, trees_init
from libetrace.depend.ends cimport ends_find_last, ends_free, ends_init
from libetrace.core.memory cimport Buffer, buffer_add, buffer_free
from libetrace.depend.processes cimport Executions, number_processes
from libetrace.depend.raw_uses cimport (
    first_stamp, take_inherited, take_links, take_opens, take_programs,
)
from libetrace.core.types cimport s32, s64, u8, u32, u64, UINT32_MAX
from libetrace.depend.uses cimport (
    READS, WRITES, Ends, Owners, RawUse, Use, UseLists, lists_free, lists_init, order_uses,
)
from libetrace.depend.walk cimport (
    BY_PIPE, BY_USE, NO_ITEM, Edges, Item, Pipe, Walk, walk_free, walk_from, walk_init,
)


class GraphError(ValueError):
    """An image is damaged: a column names a row that does not exist."""


# ---- checks of columns ----


cdef int check_rows(const u32[::1] rows, u64 n, name) except -1:
    cdef Py_ssize_t i
    cdef u32 largest = 0
    with nogil:
        for i in range(rows.shape[0]):
            largest = max(largest, rows[i])
    if rows.shape[0] and largest >= n:
        raise GraphError(f"{name} names row {largest} of {n}")
    return 0


cdef int check_optional(const s32[::1] rows, u64 n, name) except -1:
    cdef Py_ssize_t i
    cdef s32 largest = -1
    cdef s32 smallest = -1
    with nogil:
        for i in range(rows.shape[0]):
            largest = max(largest, rows[i])
            smallest = min(smallest, rows[i])
    if smallest < -1 or (largest >= 0 and <u64>largest >= n):
        raise GraphError(f"{name} names row {smallest if smallest < -1 else largest} of {n}")
    return 0


cdef int check_starts(const u64[::1] start, u64 n_rows, u64 n, name) except -1:
    cdef Py_ssize_t i
    cdef bint is_good = <u64>start.shape[0] == n_rows + 1 and start[0] == 0
    if is_good:
        with nogil:
            for i in range(start.shape[0] - 1):
                is_good &= start[i] <= start[i + 1]
        is_good = is_good and start[start.shape[0] - 1] <= n
    if not is_good:
        raise GraphError(f"{name} does not go up to {n}")
    return 0


cdef int check_length(column, u64 n, name) except -1:
    if <u64>len(column) != n:
        raise GraphError(f"{name} has {len(column)} rows of {n}")
    return 0


cdef const u32 *first_u32(const u32[::1] column) noexcept:
    return &column[0] if column.shape[0] else NULL


cdef const u64 *first_u64(const u64[::1] column) noexcept:
    return &column[0] if column.shape[0] else NULL


cdef const s32 *first_s32(const s32[::1] column) noexcept:
    return &column[0] if column.shape[0] else NULL


cdef const s64 *first_s64(const s64[::1] column) noexcept:
    return &column[0] if column.shape[0] else NULL


cdef const u8 *first_u8(const u8[::1] column) noexcept:
    return &column[0] if column.shape[0] else NULL


# ---- building ----


def links_of(image):
    try:
        return find_links(image)
    except (IndexError, KeyError) as error:
        raise GraphError(f"changes name rows that do not exist: {error}") from error


def devices_of(image):
    try:
        return find_devices(image)
    except (IndexError, KeyError) as error:
        raise GraphError(f"paths name strings that do not exist: {error}") from error


cdef class _UseColumns:
    """The columns of uses, checked; `tables` keeps them mapped."""

    def __init__(self, image, links):
        cdef const u8[::1] modes
        tables = image.tables
        cdef u64 n_paths = tables["paths"].n_rows
        self.tables = [tables, links]
        self.n_paths = <u32>n_paths
        modes = tables["paths"]["mode"]
        check_length(modes, n_paths, "paths.mode")
        self.devices.modes = first_u8(modes)
        devices, shared = devices_of(image)
        self.devices.first, self.devices.end = devices.start, devices.stop
        self.devices.first_shared, self.devices.end_shared = shared.start, shared.stop
        self.take_executions(tables["executions"], n_paths)
        self.take_opens(tables["opens"], n_paths)
        if "inherited" in tables:
            self.take_inherited(tables["inherited"], n_paths)
        if "changes" in tables:
            self.take_changes(tables["changes"])
        self.take_links(links)
        self.executions.first = first_stamp(&self.executions, &self.opens)

    cdef int take_executions(self, table, u64 n_paths) except -1:
        self.executions.n = table.n_rows
        for name in ("binary", "start_ns", "elapsed_ns"):
            check_length(table[name], table.n_rows, f"executions.{name}")
        check_optional(table["binary"], n_paths, "executions.binary")
        self.executions.binary = first_s32(table["binary"])
        self.executions.start = first_s64(table["start_ns"])
        self.executions.elapsed = first_s64(table["elapsed_ns"])
        return 0

    cdef int take_opens(self, table, u64 n_paths) except -1:
        self.opens.n = table.n_rows
        for name in ("path", "execution", "open_ns", "close_ns", "until_ns", "mode"):
            check_length(table[name], table.n_rows, f"opens.{name}")
        check_rows(table["path"], n_paths, "opens.path")
        check_rows(table["execution"], self.executions.n, "opens.execution")
        self.opens.path = first_u32(table["path"])
        self.opens.execution = first_u32(table["execution"])
        self.opens.begin = first_s64(table["open_ns"])
        self.opens.end = first_s64(table["close_ns"])
        self.opens.until = first_s64(table["until_ns"])
        self.opens.mode = first_u8(table["mode"])
        return 0

    cdef int take_inherited(self, table, u64 n_paths) except -1:
        self.inherited.n = table.n_rows
        for name in ("path", "execution", "mode"):
            check_length(table[name], table.n_rows, f"inherited.{name}")
        check_rows(table["path"], n_paths, "inherited.path")
        check_rows(table["execution"], self.executions.n, "inherited.execution")
        self.inherited.path = first_u32(table["path"])
        self.inherited.execution = first_u32(table["execution"])
        self.inherited.mode = first_u8(table["mode"])
        return 0


    cdef int take_changes(self, table) except -1:
        self.changes.n = table.n_rows
        for name in ("open", "kind", "time_ns"):
            check_length(table[name], table.n_rows, f"changes.{name}")
        check_rows(table["open"], self.opens.n, "changes.open")
        self.changes.open = first_u32(table["open"])
        self.changes.kind = first_u8(table["kind"])
        self.changes.time = first_s64(table["time_ns"])
        return 0

    cdef int take_links(self, links) except -1:
        self.links.n = len(links[0])
        self.links.path = first_u32(links[0])
        self.links.execution = first_u32(links[1])
        self.links.target = first_u32(links[2])
        self.links.time = first_s64(links[3])
        return 0


cdef class _RawUses:
    """All uses of an image; `n` of them."""

    def __cinit__(self, _UseColumns columns, u32 n_paths, bint all_programs):
        cdef u64 first_link = columns.opens.n + columns.inherited.n + columns.executions.n
        cdef u64 room = first_link + 2 * columns.links.n
        cdef u8 *is_written = NULL
        if room >= UINT32_MAX:
            raise GraphError(f"{room} uses of files are more than {UINT32_MAX}")
        self.raw = <RawUse *>malloc((room + 1) * sizeof(RawUse))
        is_written = <u8 *>calloc(<size_t>n_paths + 1, 1)
        if self.raw == NULL or is_written == NULL:
            free(is_written)
            raise MemoryError
        with nogil:
            self.n = take_opens(&columns.opens, &columns.changes, &columns.devices,
                                &columns.executions, self.raw, 0)
            self.n = take_inherited(&columns.inherited, &columns.executions, self.raw, self.n)
            self.n = take_programs(&columns.executions, all_programs, is_written, self.raw, self.n)
            self.n = take_links(&columns.links, <u32>first_link, self.raw, self.n)
            free(is_written)

    def __dealloc__(self):
        free(self.raw)


@cython.final
cdef class Graph:
    """Who wrote and who read every file of an image, in order of time.

    `reverse` turns everything round: closures then go from files to what was made of them.
    `wrapped` takes a shell and all it started as one process (table `wrappers`). A program counts
    as read by its execution when the build wrote it, with `programs` always. A symbolic link is
    written by who made it, and reads its target (`links`). Building costs one
    pass over `opens`; the columns are not needed afterwards. GraphError for a damaged image.
    """

    def __init__(self, image, *, bint reverse=False, bint wrapped=False, bint programs=False):
        tables = image.tables
        self.is_reversed = reverse
        self.n_paths = tables["paths"].n_rows
        self.n_executions = tables["executions"].n_rows
        self.edges.is_mirrored = reverse
        self.number(tables, wrapped)
        columns = links_of(image)
        self.links = list(zip(*columns[:3]))
        self.link_pipes(tables)
        self.list_uses(image, columns, programs)

    def __dealloc__(self):
        lists_free(&self.edges.by_path)
        lists_free(&self.edges.by_process)
        ends_free(&self.edges.ends)
        trees_free(&self.edges.trees)
        free(self.edges.pipe_start)
        free(self.edges.pipes)
        free(self.process_of)

    cdef int number(self, tables, bint wrapped) except -1:
        cdef Executions executions
        cdef const u64[::1] start
        table, children = tables["executions"], tables["children"]
        start = table["children.start"]
        check_length(table["upid"], self.n_executions, "executions.upid")
        check_starts(start, self.n_executions, children.n_rows, "executions.children.start")
        check_length(children["execution"], children.n_rows, "children.execution")
        check_length(children["flags"], children.n_rows, "children.flags")
        check_optional(children["execution"], self.n_executions, "children.execution")
        executions.upid = first_s64(table["upid"])
        executions.children_start = &start[0]
        executions.child = first_s32(children["execution"])
        executions.flags = first_u64(children["flags"])
        executions.n = self.n_executions
        executions.wrapper = NULL
        if wrapped and "wrappers" in tables:
            wrappers = tables["wrappers"]["execution"]
            check_length(wrappers, self.n_executions, "wrappers.execution")
            check_optional(wrappers, self.n_executions, "wrappers.execution")
            executions.wrapper = first_s32(wrappers)
        self.process_of = <u32 *>malloc((<size_t>self.n_executions + 1) * sizeof(u32))
        if self.process_of == NULL:
            raise MemoryError
        with nogil:
            self.n_processes = number_processes(&executions, self.process_of)
        return 0

    cdef int link_pipes(self, tables) except -1:
        cdef const u64[::1] start = tables["executions"]["readers.start"]
        cdef const u32[::1] readers = tables["pipe_readers"]["execution"]
        cdef u32 n_owners = self.n_processes + <u32>len(self.links)
        cdef int status
        check_starts(start, self.n_executions, readers.shape[0], "executions.readers.start")
        check_rows(readers, self.n_executions, "pipe_readers.execution")
        with nogil:
            status = deal_pipes(&self.edges, self.process_of, self.n_executions, n_owners,
                                &start[0], &readers[0] if readers.shape[0] else NULL,
                                self.is_reversed)
        if status < 0:
            raise MemoryError
        return 0

    cdef int list_uses(self, image, links, bint all_programs) except -1:
        cdef _UseColumns columns = _UseColumns(image, links)
        cdef _RawUses uses = _RawUses(columns, self.n_paths, all_programs)
        self.n_opens = columns.opens.n
        self.n_inherited = columns.inherited.n
        self.find_ends(columns, uses)
        return self.deal_uses(uses)

    cdef int find_ends(self, _UseColumns columns, _RawUses uses) except -1:
        cdef int status
        if self.n_paths + columns.changes.n >= UINT32_MAX:
            raise GraphError(f"{columns.changes.n} changes of files are too many")
        with nogil:
            status = ends_init(&self.edges.ends, self.n_paths, &columns.changes, &columns.opens,
                               columns.devices.modes)
            if status == 0:
                status = ends_find_last(&self.edges.ends, uses.raw, uses.n)
        if status < 0:
            raise MemoryError
        return 0

    cdef int deal_uses(self, _RawUses uses) except -1:
        cdef u8 by_path = READS if self.is_reversed else WRITES
        cdef u8 by_process = WRITES if self.is_reversed else READS
        cdef u32 n_owners = self.n_processes + <u32>len(self.links)
        cdef Owners owners
        cdef u32 *order
        cdef int status
        owners.process_of = self.process_of
        owners.ends = &self.edges.ends
        owners.n_processes = self.n_processes
        owners.first_link = <u32>(self.n_opens + self.n_inherited + self.n_executions)
        with nogil:
            order = order_uses(uses.raw, uses.n, self.is_reversed)
            status = -1 if order == NULL else lists_init(
                &self.edges.by_path, self.n_paths, uses.raw, order, uses.n, &owners, by_path, True,
                self.is_reversed)
            if status == 0:
                status = lists_init(
                    &self.edges.by_process, n_owners, uses.raw, order, uses.n, &owners, by_process,
                    False, self.is_reversed)
            if status == 0:
                status = trees_init(&self.edges.trees, &self.edges.ends, &self.edges.by_path)
            free(order)
        if status < 0:
            raise MemoryError
        return 0

    def process_of_execution(self, u32 execution):
        """Return the number of the process of an execution: threads and wrapped ones share it."""
        if execution >= self.n_executions:
            raise IndexError(execution)
        return self.process_of[execution]

    def is_producible(self, u32 path):
        """Tell whether anything wrote the path (reversed: read it)."""
        if path >= self.n_paths:
            raise IndexError(path)
        return self.edges.by_path.start[path] < self.edges.by_path.start[path + 1]

    def closure(self, roots, *, stops=None, modules=None, excluded=None, bint ordered=True,
                bint pipes=True):
        """Return the Closure of rows of `paths`: what they were made of, over any number of steps.

        `stops` and `modules` hold a byte for each path, `excluded` one for each execution; not 0:
        stops are listed and not looked behind, modules the same unless they are roots, excluded
        executions neither write nor read nor use pipes. Without `ordered` time does not count.
        """
        return Closure(self, roots, (stops, modules, excluded), ordered, pipes)

    def closures(self, roots, *, stops=None, modules=None, excluded=None, bint ordered=True,
                 bint pipes=True):
        """Return `(start, paths)`: paths[start[i]:start[i + 1]] is the sorted closure of root i.

        `start` is an array of typecode Q, `paths` of I. Each root is a closure of its own.
        """
        cdef Closure closure = Closure(self, (), (stops, modules, excluded), ordered, pipes)
        cdef const u32[::1] rows = array("I", roots)
        cdef Buffer out
        cdef u64[::1] start
        cdef int status
        check_rows(rows, self.n_paths, "roots")
        starts = array("Q", bytes(8 * (rows.shape[0] + 1)))
        start = starts
        out.data = NULL
        out.len = out.cap = 0
        with nogil:
            status = close_each(&closure.walk, rows, &out, start)
        try:
            if status < 0:
                raise MemoryError
            return starts, array("I", out.data[:out.len] if out.len else b"")
        finally:
            buffer_free(&out)


cdef int deal_pipes(Edges *edges, const u32 *process_of, u32 n_executions, u32 n_processes,
                    const u64 *start, const u32 *readers, bint is_reversed) noexcept nogil:
    cdef u64 *place
    cdef u64 i
    cdef u32 own, other, writer
    edges.pipe_start = <u64 *>calloc(<size_t>n_processes + 2, sizeof(u64))
    edges.pipes = <Pipe *>malloc((start[n_executions] + 1) * sizeof(Pipe))
    if edges.pipe_start == NULL or edges.pipes == NULL:
        return -1
    for writer in range(n_executions):
        for i in range(start[writer], start[writer + 1]):
            own = writer if is_reversed else readers[i]
            edges.pipe_start[<u64>process_of[own] + 2] += 1
    for i in range(n_processes):
        edges.pipe_start[i + 2] += edges.pipe_start[i + 1]
    place = edges.pipe_start + 1
    for writer in range(n_executions):
        for i in range(start[writer], start[writer + 1]):
            own = writer if is_reversed else readers[i]
            other = readers[i] if is_reversed else writer
            edges.pipes[place[process_of[own]]] = Pipe(process_of[other], own, other)
            place[process_of[own]] += 1
    return 0


# ---- walks ----


cdef int compare_numbers(const void *a, const void *b) noexcept nogil:
    cdef u32 x = (<const u32 *>a)[0]
    cdef u32 y = (<const u32 *>b)[0]
    return (x > y) - (x < y)


cdef int close_each(Walk *walk, const u32[::1] roots, Buffer *out, u64[::1] start) noexcept nogil:
    cdef const u32 *found
    cdef size_t i, j, first
    for i in range(<size_t>roots.shape[0]):
        if walk_from(walk, &roots[i], 1) < 0:
            return -1
        found = <const u32 *>walk.found.data
        first = out.len
        for j in range(walk.found.len / sizeof(u32)):
            if found[j] != roots[i] and buffer_add(out, found + j, sizeof(u32)) < 0:
                return -1
        if out.len > first:
            qsort(out.data + first, (out.len - first) / sizeof(u32), sizeof(u32), compare_numbers)
        start[i + 1] = out.len / sizeof(u32)
    return 0


cdef const u8 *mask(object raw, u64 n, name) except? NULL:
    if raw is None:
        return NULL
    check_length(raw, n, name)
    return first_u8(raw)


@cython.final
cdef class Closure:
    """What some files were made of, and the proof: made by `Graph.closure`."""

    def __cinit__(self, Graph graph, roots, rules, bint ordered, bint pipes):
        cdef const u32[::1] rows
        cdef size_t n_roots
        cdef int status
        self.graph, self.rules = graph, rules
        self.roots = array("I", roots)
        rows = self.roots
        check_rows(rows, graph.n_paths, "roots")
        if walk_init(&self.walk, &graph.edges) < 0:
            raise MemoryError
        self.walk.rules.stops = mask(rules[0], graph.n_paths, "stops")
        self.walk.rules.modules = mask(rules[1], graph.n_paths, "modules")
        self.walk.rules.excluded = mask(rules[2], graph.n_executions, "excluded")
        self.walk.rules.is_ordered = ordered
        self.walk.rules.has_pipes = pipes
        n_roots = rows.shape[0]
        with nogil:
            status = walk_from(&self.walk, &rows[0], n_roots) if n_roots else 0
        if status < 0:
            raise MemoryError

    def __dealloc__(self):
        walk_free(&self.walk)

    @property
    def paths(self):
        """Files it found, without the roots: sorted rows of `paths`, an array of typecode I."""
        cdef Buffer *found = &self.walk.found
        roots = set(self.roots)
        rows = array("I", found.data[:found.len] if found.len else b"")
        return array("I", sorted([row for row in rows if row not in roots]))

    @property
    def entered(self):
        """Rows of the writes (reversed: reads) through which it came to processes."""
        return self.rows(&self.walk.entered, self.graph.edges.by_path.uses)

    @property
    def left(self):
        """Rows of the reads (reversed: writes) of these processes, from which files were listed."""
        return self.rows(&self.walk.left, self.graph.edges.by_process.uses)

    cdef object rows(self, Buffer *numbers, const Use *uses):
        cdef const u64 *number = <const u64 *>numbers.data
        cdef size_t i
        return array("I", sorted([uses[number[i]].row for i in range(numbers.len / sizeof(u64))]))

    @property
    def executions(self):
        """Executions that wrote (reversed: read) on the way, pipes included: sorted, each once."""
        cdef const u64 *number = <const u64 *>self.walk.entered.data
        cdef const Item *item = <const Item *>self.walk.items.data
        cdef size_t i
        found = {
            self.graph.edges.by_path.uses[number[i]].execution
            for i in range(self.walk.entered.len / sizeof(u64))
        }
        for i in range(self.walk.items.len / sizeof(Item)):
            if item[i].kind == BY_PIPE:
                found.add(self.graph.edges.pipes[item[i].edge].other)
        return array("I", sorted(found))

    def use_of(self, u32 path):
        """Return the row through which a path was found first, -1 when it was not."""
        if path not in self:
            return -1
        return self.graph.edges.by_process.uses[self.walk.via_use[path]].row

    def __contains__(self, u32 path):
        return path < self.graph.n_paths and self.walk.listed[path] == self.walk.number != 0

    def chain(self, u32 path):
        """Return the shortest way from a root to a path that was found, [] when it was not.

        A list of tuples in order: `("root", path)`, then for each step `("enter", execution, row)`
        through a write of the path before, or `("pipe", own execution, other execution)`, and
        `("leave", execution, row, path)` by reading a path. Rows count as in `entered`.
        """
        if path not in self:
            return []
        steps = [self.leave(self.walk.via_use[path], path)]
        self.climb(self.walk.via_item[path], steps)
        steps.reverse()
        return steps

    cdef object leave(self, u64 use, u32 path):
        cdef const Use *one = self.graph.edges.by_process.uses + use
        return ("leave", one.execution, one.row, path)

    cdef int climb(self, u32 number, list steps) except -1:
        cdef const Item *items = <const Item *>self.walk.items.data
        cdef const Item *item
        cdef const Use *use
        cdef const Pipe *pipe
        while number != NO_ITEM:
            item = items + number
            if item.kind == BY_PIPE:
                pipe = self.graph.edges.pipes + item.edge
                steps.append(("pipe", pipe.own, pipe.other))
            elif item.is_process:
                use = self.graph.edges.by_path.uses + item.edge
                steps.append(("enter", use.execution, use.row))
            elif item.kind == BY_USE:
                steps.append(self.leave(item.edge, item.id))
            else:
                steps.append(("root", item.id))
            number = item.parent
        return 0
