# SPDX-License-Identifier: Apache-2.0
"""libetrace.depend.graph against an obvious implementation, on random and on hostile images."""

from __future__ import annotations

import bisect
import contextlib
import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dependency_rule
import pytest
from dependency_rule import Build, End, Fork, Left, Use
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.depend.graph import Graph, GraphError
from libetrace.depend.graph_builder import TABLES as GRAPH_TABLES
from libetrace.depend.graph_builder import build_graph
from libetrace.image.file import Image, NewColumn, NewTable, new_table, open_image, write_image
from libetrace.image.header import DTYPES, SCHEMA, ImageError, has_one_more

from etrace.spec.database import NONE

CLONE_THREAD = 0x10000
EMPTIED, AWAY = 1, 5
MAX_PATHS, MAX_EXECUTIONS, MAX_TIME = 6, 6, 12
Columns = dict[str, dict[str, Sequence[int]]]


def table_of(name: str, columns: dict[str, Sequence[int]]) -> NewTable:
    """Make a table whose other columns are 0."""
    schema = SCHEMA[name].columns
    given = next(column for column in schema if column in columns)
    n_rows = len(columns[given]) - has_one_more(given)
    return new_table(
        name,
        [
            array(DTYPES[c.dtype][0], columns.get(column, [0] * (n_rows + has_one_more(column))))
            for column, c in schema.items()
        ],
    )


def starts(rows: Sequence[int], n: int) -> list[int]:
    """Return the starts of n owners of which `rows` names one for each element, ascending."""
    return [bisect.bisect_left(rows, owner) for owner in range(n + 1)]


def columns_of(
    build: Build,
    n_paths: int,
    threads: Sequence[tuple[int, int]] = (),
    *,
    indexes: Sequence[int] | None = None,
    start_ns: Sequence[int] | None = None,
) -> Columns:
    """Lay a build out as columns: each execution is a upid of its own, but for `indexes`."""
    n = len(build.process_of)
    indexes = indexes or [0] * n
    upids = list(itertools.accumulate(index == 0 for index in indexes))
    parents = {fork.child: fork.parent for fork in build.forks}
    stamps = {(fork.parent, fork.child): fork.time for fork in build.forks}
    first = [row - index for row, index in enumerate(indexes)]
    pipes = sorted(build.pipes)
    children = sorted(
        [
            (*pair, CLONE_THREAD if pair in threads else 0, stamps.get(pair, NONE))
            for pair in {*threads, *stamps}
        ]
    )
    return {
        "strings": {"start": [0] * (n_paths + 1), "bytes": []},
        "paths": {"string": list(range(n_paths))},
        "executions": {
            "upid": upids,
            "index": indexes,
            "start_ns": start_ns or [0] * n,
            "parent": [parents.get(row, NONE) for row in first],
            "binary": [NONE] * n,
            "children.start": starts([parent for parent, *_ in children], n),
            "readers.start": starts([a for a, _ in pipes], n),
            "opens.start": starts([use.execution for use in build.uses], n),
        },
        "children": {
            "execution": [child for _, child, _, _ in children],
            "flags": [flags for _, _, flags, _ in children],
        },
        "fork_times": {"time_ns": [int(time) for _, _, _, time in children]},
        "pipe_readers": {"execution": [b for _, b in pipes]},
        "opens": {
            "path": [use.path for use in build.uses],
            "execution": [use.execution for use in build.uses],
            "open_ns": [use.begin for use in build.uses],
            "close_ns": [use.end for use in build.uses],
            "until_ns": [use.end for use in build.uses],
            "mode": [2 if use.reads and use.writes else int(use.writes) for use in build.uses],
        },
        "inherited": {"path": [], "execution": [], "descriptor": [], "mode": []},
        "changes": changes_of(build),
    }


def changes_of(build: Build) -> dict[str, Sequence[int]]:
    """Let some use of the path report each end."""
    opens = {use.path: row for row, use in enumerate(build.uses)}
    ends = sorted((opens[end.path], end.time, end.is_away) for end in build.ends)
    return {
        "open": [row for row, _, _ in ends],
        "kind": [AWAY if is_away else EMPTIED for _, _, is_away in ends],
        "time_ns": [time for _, time, _ in ends],
        "name": [NONE] * len(ends),
    }


@dataclass(frozen=True, slots=True)
class Images:
    """Writes images to one place."""

    path: Path

    def make(self, columns: Columns) -> Image:
        """Write an image of these tables and open it."""
        empty: Columns = {
            name: {list(table.columns)[-1]: []}
            for name, table in SCHEMA.items()
            if not table.is_product and name not in columns
        }
        tables = (columns | empty).items()
        write_image(self.path, {}, [table_of(name, each) for name, each in tables])
        return open_image(self.path)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    return Images(tmp_path_factory.mktemp("graph") / "image")


@st.composite
def uses(draw: st.DrawFn) -> Use:
    begin = draw(st.integers(0, MAX_TIME))
    reads, writes = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    return Use(
        draw(st.integers(0, MAX_PATHS - 1)),
        draw(st.integers(0, MAX_EXECUTIONS - 1)),
        begin,
        begin + draw(st.integers(0, 4)),
        reads,
        writes,
    )


executions = st.integers(0, MAX_EXECUTIONS - 1)
times = st.integers(0, MAX_TIME)
pairs = st.tuples(executions, executions)
lefts = st.builds(
    Left,
    stops=st.frozensets(st.integers(0, MAX_PATHS - 1), max_size=2),
    excluded=st.frozensets(st.integers(0, MAX_EXECUTIONS - 1), max_size=2),
    ordered=st.booleans(),
    pipes=st.booleans(),
)


def mask(rows: Any, n: int) -> bytearray:
    return bytearray(row in rows for row in range(n))


def rules(left: Left) -> dict[str, Any]:
    return {
        "stops": mask(left.stops, MAX_PATHS),
        "excluded": mask(left.excluded, MAX_EXECUTIONS),
        "ordered": left.ordered,
        "pipes": left.pipes,
    }


@dataclass(frozen=True, slots=True)
class Case:
    """A build, what is left out, and what is asked for."""

    uses: list[Use]
    pipes: list[tuple[int, int]]
    children: list[tuple[int, int, int, bool]]  # parent, child, stamp, whether it is a thread
    executes: list[bool]  # whether an execution is the next one of the process before it
    start_ns: list[int]
    left: Left
    roots: list[int]
    ends: list[End]

    @property
    def indexes(self) -> list[int]:
        """The index of each execution in its process."""
        found = [0]
        for executes in self.executes:
            found.append(found[-1] + 1 if executes else 0)
        return found

    @property
    def threads(self) -> list[tuple[int, int]]:
        """(creator, thread) of each thread; those of a process that executes end with that."""
        executed = self.execs()
        return [
            (parent, child)
            for parent, child, _, is_thread in self.children
            if is_thread and self.indexes[child] == 0 and not {parent, child} & executed.keys()
        ]

    def build(self) -> Build:
        """Return the build: no end is of a path that nothing used."""
        used = {use.path for use in self.uses}
        ends = [end for end in self.ends if end.path in used]
        uses = sorted(self.uses, key=lambda use: use.execution)
        same = [(row - 1, row) for row, index in enumerate(self.indexes) if index]
        groups = dependency_rule.groups(MAX_EXECUTIONS, [*self.threads, *same])
        began: defaultdict[int, list[int]] = defaultdict(lambda: [MAX_TIME])
        for use in uses:
            began[use.execution].append(use.begin)  # after the fork
        forks = [
            Fork(parent, child, min(time, self.first + self.start_ns[child], *began[child]))
            for parent, child, time, _ in self.children
            if self.indexes[child] == 0
        ]
        return Build(uses, groups, self.pipes, ends, forks, self.execs())

    @property
    def first(self) -> int:
        """The stamp at which the trace began, from which starts count."""
        since = [use.begin - self.start_ns[use.execution] for use in self.uses if use.begin]
        return max(min(since, default=0), 0)

    def execs(self) -> dict[int, int]:
        """Return when the processes executed that had not before."""
        return {
            row - 1: self.first + self.start_ns[row]
            for row, index in enumerate(self.indexes)
            if index == 1
        }

    def columns(self) -> Columns:
        """Return the tables of the build."""
        return columns_of(
            self.build(), MAX_PATHS, self.threads, indexes=self.indexes, start_ns=self.start_ns
        )


cases = st.builds(
    Case,
    uses=st.lists(uses(), max_size=14),
    pipes=st.lists(pairs, max_size=3, unique=True),
    children=st.lists(
        st.tuples(executions, executions, times, st.booleans()),
        max_size=4,
        unique_by=lambda child: child[1],
    ),
    executes=st.lists(st.booleans(), min_size=MAX_EXECUTIONS - 1, max_size=MAX_EXECUTIONS - 1),
    start_ns=st.lists(times, min_size=MAX_EXECUTIONS, max_size=MAX_EXECUTIONS),
    left=lefts,
    roots=st.lists(st.integers(0, MAX_PATHS - 1), min_size=1, max_size=2, unique=True),
    ends=st.lists(
        st.builds(End, st.integers(0, MAX_PATHS - 1), times, st.booleans()),
        max_size=6,
    ),
)


@settings(max_examples=400, deadline=None)
@given(cases)
def test_it_finds_what_the_definition_says(images: Images, case: Case) -> None:
    left, roots, build = case.left, case.roots, case.build()
    image = images.make(case.columns())
    graph, backwards = Graph(image), Graph(image, reverse=True)
    assert [graph.process_of_execution(e) for e in range(MAX_EXECUTIONS)] == build.process_of
    found = graph.closure(roots, **rules(left))
    assert list(found.paths) == sorted(dependency_rule.closure(build, roots, left))
    assert len(set(found.entered)) == len(found.entered)  # each use is looked at once
    for root in range(MAX_PATHS):
        own = dependency_rule.closure(build, [root], left)
        assert list(graph.closure([root], **rules(left)).paths) == sorted(own)
    reached = backwards.closure(roots[:1], **rules(left))
    assert list(reached.paths) == sorted(dependency_rule.reverse(build, MAX_PATHS, roots[0], left))
    nearest = graph.closure(roots, **rules(left), nearest=True)
    assert set(nearest.paths) >= set(found.paths)
    for path in found.paths:
        chain = found.chain(path)
        assert_is_a_chain(build, left, Proof(graph, image), chain, path)
        assert len(nearest.chain(path)) <= len(chain)
        assert not left.ordered or found.is_in_time(chain)


@dataclass(frozen=True, slots=True)
class Proof:
    """Rows of a graph -> uses: those of opens come first, copies of them later."""

    graph: Graph
    image: Image

    def use(self, build: Build, row: int) -> tuple[set[Any], Use]:
        """Return the nodes that a use may be of, and the use."""
        if row < len(build.uses):
            use = build.uses[row]
            return {build.process(use.execution)}, use
        path, execution = self.graph.use(row)
        others = build_graph(self.image)
        kind = others["graph_others"]["kind"][row - len(build.uses)]
        begin, end = (others["graph_uses"][name][row] for name in ("begin_ns", "end_ns"))
        use = Use(path, execution, begin, end, bool(kind & 1), bool(kind & 2))
        assert (build.memory(execution), use) in build.owned
        return {build.memory(execution)}, use


def assert_is_a_chain(build: Build, left: Left, proof: Proof, chain: list[Any], path: int) -> None:
    """Each step follows from the one before by the definition."""
    kind, at = chain[0]
    assert kind == "root"
    until, nodes = float("inf"), set[Any]()
    since = dependency_rule.last_content(build, at)
    for step in chain[1:]:
        match step:
            case ("enter", execution, row):
                nodes, use = proof.use(build, row)
                assert (use.path, use.execution, use.writes) == (at, execution, True)
                assert use.begin <= until
                assert use.end >= since or not left.ordered
                until = min(until, use.end)
            case ("pipe", own, other):
                assert (other, own) in build.pipes
                assert nodes & build.readers(own)
                nodes = {build.memory(other)}
            case ("fork", own, other, time):
                assert Fork(other, own, time) in build.forks
                assert nodes == {build.memory(own)} != {build.memory(other)}
                nodes, until = {build.memory(other)}, min(until, time)
            case ("leave", execution, row, at):
                own_nodes, use = proof.use(build, row)
                assert (use.path, use.execution, use.reads) == (at, execution, True)
                assert nodes == own_nodes
                assert use.begin <= until
                until, since = min(until, use.end), dependency_rule.content_of(build, use)
        if not left.ordered:
            until = float("inf")
    assert at == path


SMALL = Build(
    [Use(0, 0, 1, 2, False, True), Use(1, 0, 1, 2, True, False), Use(1, 1, 0, 1, False, True)],
    [0, 1],
    [(0, 1)],
    [End(0, 1, is_away=False)],
)


def damaged(table: str, column: str, value: int) -> Callable[[Columns], None]:
    def damage(columns: Columns) -> None:
        columns[table][column] = [value, *columns[table][column][1:]]

    return damage


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("opens", "path", 2),
        ("opens", "path", 0xFFFFFFFF),
        ("opens", "execution", 2),
        ("executions", "binary", 2),
        ("executions", "binary", -2),
        ("executions", "children.start", 1),
        ("executions", "readers.start", 7),
        ("pipe_readers", "execution", 2),
        ("children", "execution", 2),
        ("children", "execution", -2),
        ("inherited", "path", 2),
        ("inherited", "execution", 2),
        ("changes", "open", 3),
        ("wrappers", "execution", 2),
        ("wrappers", "execution", -2),
    ],
)
def test_a_row_that_does_not_exist_is_an_error(
    images: Images, table: str, column: str, value: int
) -> None:
    columns = columns_of(SMALL, 2, [(0, 1)])
    columns["inherited"] = {"path": [0], "execution": [1], "descriptor": [0], "mode": [0]}
    columns["wrappers"] = {"execution": [NONE, 0]}
    assert Graph(images.make(columns), wrapped=True).n_processes == 1
    damaged(table, column, value)(columns)
    with pytest.raises(ImageError, match=rf"{table}\.{column}"):
        Graph(images.make(columns), wrapped=True)


@pytest.mark.parametrize("time", [-(2**63), -1, 2**63 - 1])
def test_absurd_times_do_no_harm(images: Images, time: int) -> None:
    columns = columns_of(SMALL, 2, [])
    for table, column in (
        ("opens", "open_ns"),
        ("opens", "close_ns"),
        ("opens", "until_ns"),
        ("changes", "time_ns"),
    ):
        columns[table][column] = [time] * len(columns[table][column])
    columns["executions"]["start_ns"] = columns["executions"]["elapsed_ns"] = [time] * 2
    columns["executions"]["binary"] = [0, 1]
    image = images.make(columns)
    for reverse in (False, True):
        assert list(Graph(image, reverse=reverse, programs=True).closure([0, 1]).paths) == []


def test_roots_and_masks_are_checked(images: Images) -> None:
    graph = Graph(images.make(columns_of(SMALL, 2, [])))
    with pytest.raises(GraphError, match="roots names row 2 of 2"):
        graph.closure([2])
    with pytest.raises(GraphError, match="stops has 1 rows of 2"):
        graph.closure([0], stops=b"\0")
    with pytest.raises(IndexError):
        graph.process_of_execution(2)
    assert list(graph.closure([]).paths) == []


def test_a_chain_of_a_hundred_thousand_steps_needs_no_recursion(images: Images) -> None:
    n = 100_000
    made = [
        use
        for i in range(n)
        for use in (Use(i, i, n - i, n - i, False, True), Use(i + 1, i, n - i, n - i, True, False))
    ]
    build = Build(made, list(range(n)), [])
    columns = columns_of(build, n + 1, [])
    closure = Graph(images.make(columns)).closure([0])
    assert list(closure.paths) == list(range(1, n + 1))
    assert len(closure.chain(n)) == 2 * n + 1


# ---- graphs that are in an image ----

GRAPH_COLUMNS = [
    (name, column, c.dtype) for name in GRAPH_TABLES for column, c in SCHEMA[name].columns.items()
]


def stored(images: Images) -> Image:
    """Return an image of a build with pipes, ends and inherited descriptors, its graph in it."""
    columns = columns_of(SMALL, 2, [(0, 1)])
    columns["inherited"] = {"path": [0], "execution": [1], "descriptor": [0], "mode": [0]}
    image = images.make(columns)
    graph = build_graph(image)
    tables = [
        NewTable(t.name, t.n_rows, [NewColumn(n, i.dtype, t[n]) for n, i in t.infos.items()])
        for t in image.tables.values()
    ]
    write_image(images.path, {}, [*tables, *(table_of(name, dict(graph[name])) for name in graph)])
    return open_image(images.path)


def test_a_stored_graph_gives_what_one_that_is_made_gives(images: Images) -> None:
    image = stored(images)
    assert {name for name in image.tables if name.startswith("graph_")} <= set(GRAPH_TABLES)
    for reverse in (False, True):
        lying, made = (
            Graph(image, reverse=reverse, tables=tables) for tables in (None, build_graph(image))
        )
        for root in range(2):
            one, other = lying.closure([root]), made.closure([root])
            assert list(one.paths) == list(other.paths)
            assert [one.chain(path) for path in one.paths] == [
                other.chain(path) for path in other.paths
            ]


@given(st.lists(uses(), max_size=14))
def test_the_first_open_of_a_path_is_the_earliest(images: Images, found: list[Use]) -> None:
    image = images.make(columns_of(Build(found, [0] * MAX_EXECUTIONS, [], []), MAX_PATHS, []))
    modes, first = image["opens"]["mode"], build_graph(image)["graph_paths"]["first"]
    for path in range(MAX_PATHS):
        rows = [row for row, use in enumerate(found) if use.path == path]
        times = {row: (found[row].begin, -modes[row]) for row in rows}  # of two at once the write
        assert first[path] == min(rows, key=lambda row: times[row], default=NONE)


@pytest.mark.parametrize(("table", "column", "dtype"), GRAPH_COLUMNS)
@pytest.mark.parametrize("value", [1, 2, 5, 0xFF, 0xFFFFFFFF, 2**63 - 1])
def test_a_damaged_graph_is_an_error_or_another_answer(
    images: Images, table: str, column: str, dtype: str, value: int
) -> None:
    image = stored(images)
    code = DTYPES[dtype][0]
    tables = {name: dict(image[name].columns) for name in GRAPH_TABLES}
    largest = 2 ** (8 * array(code).itemsize - (code in "qi")) - 1
    for place in range(len(tables[table][column])):
        bad = array(code, tables[table][column])
        bad[place] = min(value, largest)
        damaged_tables = {**tables, table: {**tables[table], column: memoryview(bad)}}
        for reverse in (False, True):
            graph = Graph(image, reverse=reverse, tables=damaged_tables)
            for roots in ([0], [1], [0, 1]):
                with contextlib.suppress(GraphError):
                    found = graph.closure(roots)
                    assert set(found.paths) <= {0, 1}
                    assert all(found.chain(path) for path in found.paths)
                    assert set(found.executions) <= {0, 1}


def test_columns_of_other_lengths_are_an_error(images: Images) -> None:
    image = stored(images)
    for table, column, dtype in GRAPH_COLUMNS:
        tables = {name: dict(image[name].columns) for name in GRAPH_TABLES}
        tables[table][column] = memoryview(array(DTYPES[dtype][0], [0] * 9))
        if column != "use":  # lists have any length
            with pytest.raises(GraphError, match="damaged graph"):
                [Graph(image, reverse=reverse, tables=tables) for reverse in (False, True)]
