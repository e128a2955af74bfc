# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The graph of an image -> who wrote and read what; questions about it (docs/dependencies.md).

The tables are those that are in the image, or that libetrace.depend.graph_builder makes of it.
Binding takes their addresses (libetrace.image.columns) and reads nothing: a walk checks what it
takes out of them.
"""
from array import array

cimport cython
from libc.stdlib cimport qsort

from libetrace.core.errors import Error
from libetrace.depend.graph_builder import TABLES, build_graph
from libetrace.image.header import ImageError

from libetrace.core.types cimport INT64_MAX, UINT32_MAX, s64, u8, u32, u64
from libetrace.depend.uses cimport Uses, execution_of, path_of
from libetrace.depend.walk cimport (
    BY_FORK, BY_PIPE, BY_USE, DAMAGED, NO_ITEM, Item, walk_free, walk_from, walk_init,
)
from libetrace.image.columns cimport U4, Columns


class GraphError(Error, ValueError):
    """A graph is damaged, or is asked for a row that does not exist."""


# Whether there is a row 0 of all that lists name: a walk takes it for a row that does not exist.
cdef bint has_row_0(const Edges *edges) noexcept:
    if (edges.by_path.n or edges.by_process.n) and not edges.uses.n:
        return False
    if edges.uses.n and not edges.n_paths:
        return False
    return not (edges.uses.n or edges.n_pipes) or (edges.n_executions and edges.n_processes)


cdef int check_rows(const u32[::1] rows, u64 n, name) except -1:
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if rows[i] >= n:
            raise GraphError(f"{name} names row {rows[i]} of {n}")
    return 0


cdef const u8 *mask(object raw, u64 n, name) except? NULL:
    cdef const u8[::1] bytes_of
    if raw is None:
        return NULL
    if <u64>len(raw) != n:
        raise GraphError(f"{name} has {len(raw)} rows of {n}")
    bytes_of = raw
    return &bytes_of[0] if n else NULL


@cython.final
cdef class Graph:
    """Who wrote and who read every file of an image, in order of time.

    With `reverse` closures go from files to the files that depend on them. The tables in the image
    are used, unless `wrapped` or `programs` asks for another graph, or there are none: then they
    are made (`build_graph`), or taken from `tables`. GraphError for lengths that contradict each
    other.
    """

    def __init__(self, image, *, bint reverse=False, bint wrapped=False, bint programs=False,
                 tables=None):
        self.path = str(image.path)
        self.is_reversed = self.edges.is_mirrored = reverse
        if tables is None and (wrapped or programs or TABLES[0] not in image.tables):
            tables = build_graph(image, wrapped=wrapped, programs=programs)
        try:
            self.columns = Columns(image, tables, is_checked=False)
        except ImageError as error:
            raise self.damage(error.message) from error
        self.n_paths = self.edges.n_paths = <u32>self.columns.paths_string.n
        self.n_executions = self.edges.n_executions = <u32>self.columns.executions_upid.n
        self.bind_uses()
        self.bind_lists()

    cdef object damage(self, str what):
        return GraphError(f"{self.path}: damaged graph: {what}", "make it again: cas cache --force")

    # Compares the length of a column with how many there are of what it has a row for.
    cdef int fit(self, u64 n_elements, u64 n) except -1:
        if n_elements != n:
            raise self.damage(f"{n_elements} elements of {n}")
        return 0

    cdef int bind_uses(self) except -1:
        cdef Columns c = self.columns
        cdef Uses *uses = &self.edges.uses
        self.n_opens = uses.n_opens = c.opens_path.n
        uses.n = self.n_opens + c.graph_others_path.n
        if uses.n >= UINT32_MAX:
            raise self.damage("too many uses")
        self.fit(c.graph_uses_begin_ns.n, uses.n)
        self.fit(c.graph_executions_process.n, self.n_executions)
        uses.begin = c.graph_uses_begin_ns.at
        uses.end = c.graph_uses_end_ns.at
        uses.open_path = c.opens_path.at
        uses.open_execution = c.opens_execution.at
        uses.process_of = c.graph_executions_process.at
        uses.other_path = c.graph_others_path.at
        uses.other_execution = c.graph_others_execution.at
        uses.other_process = c.graph_others_process.at
        uses.other_kind = c.graph_others_kind.at
        return 0

    cdef int bind_lists(self) except -1:
        cdef Columns c = self.columns
        cdef Edges *edges = &self.edges
        cdef bint back = self.is_reversed
        cdef U4 by_path = c.path_reads_use if back else c.path_writes_use
        cdef U4 by_process = c.process_writes_use if back else c.process_reads_use
        cdef U4 own = c.pipe_targets_own if back else c.pipe_sources_own
        cdef u64 n_processes = c.graph_processes_reads_start.n - 1
        edges.by_path.n, edges.by_process.n = by_path.n, by_process.n
        edges.ends.n, edges.n_pipes = c.path_ends_time_ns.n, own.n
        if max(edges.by_path.n, edges.by_process.n, n_processes) >= UINT32_MAX:
            raise self.damage("lists are too long")
        self.n_processes = edges.n_processes = <u32>n_processes
        if not has_row_0(edges):
            raise self.damage("lists of nothing")
        self.fit(c.graph_paths_last.n, self.n_paths)
        edges.by_path.start = (
            c.graph_paths_reads_start if back else c.graph_paths_writes_start).at
        edges.by_path.use = by_path.at
        edges.by_process.start = (
            c.graph_processes_writes_start if back else c.graph_processes_reads_start).at
        edges.by_process.use = by_process.at
        edges.ends.start = c.graph_paths_ends_start.at
        edges.ends.last = c.graph_paths_last.at
        edges.ends.time = c.path_ends_time_ns.at
        edges.ends.is_away = c.path_ends_is_away.at
        edges.pipe_start = (
            c.graph_processes_targets_start if back else c.graph_processes_sources_start).at
        edges.pipe_own = own.at
        edges.pipe_other = (c.pipe_targets_other if back else c.pipe_sources_other).at
        edges.pipe_process = (c.pipe_targets_process if back else c.pipe_sources_process).at
        edges.pipe_time = (c.pipe_targets_time_ns if back else c.pipe_sources_time_ns).at
        return 0

    def process_of_execution(self, u32 execution):
        """Return the number of the process of an execution: threads and wrapped ones share it."""
        if execution >= self.n_executions:
            raise IndexError(execution)
        return self.edges.uses.process_of[execution]

    def use(self, u32 row):
        """Return (path, execution) of a use: a row that a closure names."""
        if row >= self.edges.uses.n:
            raise IndexError(row)
        return path_of(&self.edges.uses, row), execution_of(&self.edges.uses, row)

    def open_of(self, u64 row):
        """Return the row of `opens` that a use is of, -1 for one that is of none."""
        cdef u64 n = self.edges.uses.n
        cdef u64 first
        if row >= n:
            raise IndexError(row)
        if row < self.n_opens:
            return row
        if self.later is None:
            self.later = self.find_later()
        first = n - min(n, <u64>len(self.later))
        return self.later[row - first] if row >= first else -1

    # The opens of the uses that lie last.
    cdef list find_later(self):
        cdef const u32 *open = self.columns.open_uses_open.at
        cdef u64 n = self.columns.open_uses_open.n
        cdef u64 i
        return [open[i] for i in range(1, n) if open[i] == open[i - 1] and open[i] < self.n_opens]

    def is_producible(self, u32 path):
        """Return whether anything wrote the path (reversed: read it)."""
        if path >= self.n_paths:
            raise IndexError(path)
        return self.edges.by_path.start[path] < self.edges.by_path.start[path + 1]

    def closure(self, roots, *, stops=None, modules=None, excluded=None, bint ordered=True,
                bint pipes=True, bint nearest=False):
        """Return the Closure of rows of `paths`: their dependencies, over any number of steps.

        `stops` and `modules` hold a byte for each path, `excluded` one for each execution; not 0:
        stops are listed and not followed, modules the same unless they are roots, excluded
        executions neither write nor read nor use pipes. Without `ordered` time does not count.
        With `nearest` chains are the shortest, and each step is in order of time, but a chain as a
        whole perhaps not (`Closure.is_in_time`). GraphError for a damaged graph.
        """
        return Closure(self, roots, (stops, modules, excluded), ordered, pipes, nearest)


# ---- walks ----


cdef int compare_numbers(const void *a, const void *b) noexcept nogil:
    cdef u32 x = (<const u32 *>a)[0]
    cdef u32 y = (<const u32 *>b)[0]
    return (x > y) - (x < y)


cdef object numbers(const Buffer *rows):
    return array("I", rows.data[:rows.len] if rows.len else b"")


@cython.final
cdef class Closure:
    """What some files were made of, and the proof: made by `Graph.closure`."""

    def __cinit__(self, Graph graph, roots, rules, bint ordered, bint pipes, bint nearest):
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
        self.walk.rules.is_nearest = nearest
        n_roots = rows.shape[0]
        with nogil:
            status = walk_from(&self.walk, &rows[0], n_roots) if n_roots else 0
        if status == DAMAGED:
            raise graph.damage("a row that does not exist")
        if status < 0:
            raise MemoryError

    def __dealloc__(self):
        walk_free(&self.walk)

    @property
    def paths(self):
        """Files it found, without the roots: sorted rows of `paths`, an array of typecode I."""
        cdef const u32 *found = <const u32 *>self.walk.found.data
        cdef u32[::1] kept
        cdef size_t n = 0
        cdef size_t i
        out = numbers(&self.walk.found)
        if not len(out):
            return out
        kept = out
        with nogil:
            for i in range(self.walk.found.len / sizeof(u32)):
                if not self.walk.is_root[found[i]]:
                    kept[n] = found[i]
                    n += 1
            qsort(&kept[0], n, sizeof(u32), compare_numbers)
        kept = None  # an array that is looked at keeps its length
        del out[n:]
        return out

    @property
    def entered(self):
        """Rows of the writes (reversed: reads) through which it came to processes."""
        return array("I", sorted(numbers(&self.walk.entered)))

    @property
    def left(self):
        """Rows of the reads (reversed: writes) of these processes, from which files were listed."""
        return array("I", sorted(numbers(&self.walk.left)))

    @property
    def executions(self):
        """Executions that wrote (reversed: read) on the way, pipes included: sorted, each once."""
        cdef const u32 *use = <const u32 *>self.walk.entered.data
        cdef const Item *item = <const Item *>self.walk.items.data
        cdef size_t i
        found = {
            execution_of(&self.graph.edges.uses, use[i])
            for i in range(self.walk.entered.len / sizeof(u32))
        }
        for i in range(self.walk.items.len / sizeof(Item)):
            if item[i].kind in (BY_PIPE, BY_FORK):
                found.add(self.graph.edges.pipe_other[item[i].edge])
        return array("I", sorted(found))

    def use_of(self, u32 path):
        """Return the row of the use through which a path was found first, -1 when it was not."""
        return self.walk.via_use[path] if path in self else -1

    def __contains__(self, u32 path):
        return path < self.graph.n_paths and self.walk.is_listed[path] != 0

    def chain(self, u32 path):
        """Return a chain from a root to a path, [] when the path was not found.

        A list of tuples in order: `("root", path)`, then for each step `("enter", execution, row)`
        through a write of the path before, `("pipe", own execution, other execution)` or `("fork",
        own execution, other execution, ns)`, and `("leave", execution, row, path)` by reading a
        path. Rows count as in `entered`. Of a `nearest` closure it is the shortest chain.
        """
        if path not in self:
            return []
        steps = [self.leave(self.walk.via_use[path], path)]
        self.climb(self.walk.via_item[path], steps)
        steps.reverse()
        return steps

    def is_in_time(self, chain):
        """Return whether nothing in a chain of a forward closure happened too late."""
        cdef const Edges *edges = &self.graph.edges
        cdef s64 limit = INT64_MAX
        for step in chain:
            if step[0] in ("enter", "leave"):
                if edges.uses.begin[<u32>step[2]] > limit:
                    return False
                limit = min(limit, edges.uses.end[<u32>step[2]])
            elif step[0] == "fork":
                limit = min(limit, <s64>step[3])
        return True

    cdef object leave(self, u32 use, u32 path):
        return ("leave", execution_of(&self.graph.edges.uses, use), use, path)

    cdef int climb(self, u32 number, list steps) except -1:
        cdef const Item *items = <const Item *>self.walk.items.data
        cdef const Edges *edges = &self.graph.edges
        cdef const Item *item
        while number != NO_ITEM:
            item = items + number
            if item.kind in (BY_PIPE, BY_FORK):
                own, other = edges.pipe_own[item.edge], edges.pipe_other[item.edge]
                if item.kind == BY_PIPE:
                    steps.append(("pipe", own, other))
                else:
                    steps.append(("fork", own, other, edges.pipe_time[item.edge]))
            elif item.is_process:
                steps.append(("enter", execution_of(&edges.uses, item.edge), <u32>item.edge))
            elif item.kind == BY_USE:
                steps.append(self.leave(<u32>item.edge, item.id))
            else:
                steps.append(("root", item.id))
            number = item.parent
        return 0
