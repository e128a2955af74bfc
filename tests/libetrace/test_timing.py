# SPDX-License-Identifier: Apache-2.0
"""The passes over columns of libetrace.timing, against the same in plain Python."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.timing.network import cut_processes, sort_edges
from libetrace.timing.schedule import find_slacks, run_network

NONE = -1
Graph = tuple[list[int], list[list[int]], list[int], list[int], list[int], list[bool]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Return work, what each segment follows, who starts it, its place, slots, who is a make."""
    n = draw(st.integers(1, 12))
    work = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    before = [
        draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        for i in range(n)
    ]
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    walker = draw(st.lists(st.integers(NONE, len(sizes) - 1), min_size=n, max_size=n))
    place = draw(st.permutations(range(n)))
    return work, before, walker, place, sizes, [draw(st.booleans()) for _ in sizes]


def columns(before: list[list[int]]) -> tuple[array[int], array[int]]:
    start, other = array("I", [0]), array("i")
    for each in before:
        other.extend(each)
        start.append(len(other))
    return start, other


class Walker:
    """A make or ninja with slots of its own; jobs are numbers, which `place` orders."""

    def __init__(self, place: list[int], n_slots: int, *, is_make: bool) -> None:
        self.place, self.n_slots, self.is_make = place, n_slots, is_make
        self.ready = set[int]()
        self.n_running, self.at, self.is_at_end = 0, -1, True
        self.waits_with: int | None = None

    def jobs(self) -> Iterator[int]:
        """Yield what starts now, when something changed."""
        if self.is_at_end:
            self.at, self.is_at_end = -1, False
        while True:
            if self.waits_with is None:
                can = [i for i in self.ready if self.place[i] > self.at or not self.is_make]
                if not can and self.ready and not self.n_running:
                    self.at = -1
                    continue
                if not can:
                    self.is_at_end = True
                    return
                if not self.is_make and self.n_running == self.n_slots:
                    return
                self.waits_with = min(can, key=self.place.__getitem__)
                self.at = self.place[self.waits_with]
                self.ready.remove(self.waits_with)
            if self.n_running == self.n_slots:
                return
            self.n_running += 1
            yield self.waits_with
            self.waits_with = None


def ends_by_object(graph: Graph) -> list[float]:
    """Run segments that hold their slot while they work; what ends at one time is seen at once."""
    work, before, kind, place, sizes, is_make = graph
    walkers = [Walker(place, n, is_make=each) for n, each in zip(sizes, is_make, strict=True)]
    left, end = [set(each) for each in before], [0.0] * len(work)
    running = list[tuple[float, int]]()
    changed, now = set[int](), 0.0

    def make_ready(i: int) -> None:
        if kind[i] == NONE:
            heapq.heappush(running, (now + work[i], i))
        else:
            walkers[kind[i]].ready.add(i)
            changed.add(kind[i])

    for i, each in enumerate(left):
        if not each:
            make_ready(i)
    while True:
        if not running or running[0][0] > now:
            for number in changed:
                for i in walkers[number].jobs():
                    heapq.heappush(running, (now + work[i], i))
            changed.clear()
        if not running:
            return end
        now, done = heapq.heappop(running)
        end[done] = now
        if kind[done] != NONE:
            walkers[kind[done]].n_running -= 1
            changed.add(kind[done])
        for i, each in enumerate(left):
            if done in each:
                each.remove(done)
                if not each:
                    make_ready(i)


def run(
    graph: Graph, work: list[float] | None = None
) -> tuple[array[float], array[float], array[int], array[int]]:
    """Run segments, with slots when `work` is that of the graph."""
    n, (start, other) = len(graph[0]), columns(graph[1])
    walker = array("i", graph[2] if work is None else [NONE] * n)
    return run_network(
        start, other, array("d", graph[0] if work is None else work), array("q", range(n)), walker,
        array("d", graph[3]), walker, bytes(n), array("i", range(len(graph[4]))), bytes(graph[5]),
        graph[4], None,
    )  # fmt: skip


@settings(deadline=None)
@given(graphs())
def test_segments_run_as_in_plain_python(graph: Graph) -> None:
    work, n = graph[0], len(graph[0])
    begin, end, order, waited = run(graph)
    assert list(end) == ends_by_object(graph)
    assert [e - b for b, e in zip(begin, end, strict=True)] == work
    assert sorted(order) == list(range(n))
    assert [end[i] for i in order] == sorted(end)
    for i, each in enumerate(waited):
        assert begin[i] == (0 if each == NONE else end[each])


@settings(deadline=None)
@given(graphs())
def test_a_segment_may_end_later_by_its_slack_and_no_more(graph: Graph) -> None:
    work, (start, other) = graph[0], columns(graph[1])
    _, end, order, _ = run(graph, [float(each) for each in work])
    slack = find_slacks(start, other, order, end, array("d", work))
    for i in range(len(work)):
        for more in (0, 1):
            times = [each + (slack[i] + more) * (i == at) for at, each in enumerate(work)]
            assert max(run(graph, times)[1]) == max(end) + more


def ends_of_jobs(is_make: bytes, pools: list[int], sizes: list[int]) -> list[float]:
    """Run four jobs of 1 s, two of each walker of `pools`."""
    walker = array("i", [0, 0, 1, 1])
    found = run_network(
        array("I", bytes(20)), array("i"), array("d", [1] * 4), array("q", range(4)), walker,
        array("d", range(4)), walker, bytes(4), array("i", pools), is_make, sizes, None,
    )  # fmt: skip
    return list(found[1])


def test_makes_that_share_slots_have_one_each_at_least() -> None:
    assert ends_of_jobs(b"\1\1", [0, 0], [1]) == [1, 2, 1, 2]
    assert ends_of_jobs(b"\1\1", [0, 0], [2]) == [1, 1, 1, 2]
    assert ends_of_jobs(b"\0\1", [0, 1], [1, 2]) == [1, 2, 1, 1]


def test_segments_that_wait_for_each_other_do_not_end() -> None:
    none = array("i", [NONE, NONE])
    found = run_network(
        array("I", [0, 1, 2]), array("i", [1, 0]), array("d", [1, 1]), array("q", [0, 0]), none,
        array("d", [0, 0]), none, bytes(2), array("i"), b"", [], None,
    )  # fmt: skip
    assert list(found[2]) == []


def test_edges_keep_their_order() -> None:
    found = sort_edges(
        array("i", [2, 0, 2, 2]), array("i", [1, 1, 0, 1]), array("b", [0, 1, 2, 3]),
        array("i", [7, 8, 9, 10]), 3,
    )  # fmt: skip
    assert [list(each) for each in found] == [
        [0, 1, 1, 4],
        [1, 1, 0, 1],
        [1, 0, 2, 3],
        [8, 7, 9, 10],
    ]


@pytest.mark.parametrize("wrong", [(2, 0), (0, 2), (-1, 0), (0, -1)])
def test_an_edge_of_no_segment_is_refused(wrong: tuple[int, int]) -> None:
    after, before = (array("i", [each]) for each in wrong)
    with pytest.raises(IndexError):
        sort_edges(after, before, array("b", [0]), array("i", [NONE]), 2)
    with pytest.raises((IndexError, ValueError)):
        run_network(
            array("I", [0, 1]), array("i", [wrong[0] or wrong[1]]), array("d", [1]),
            array("q", [0]), array("i", [NONE]), array("d", [0]), array("i", [NONE]), bytes(1),
            array("i"), b"", [], None,
        )  # fmt: skip


def test_processes_of_no_rows_or_children_are_refused() -> None:
    one, times, lists = array("i", [0]), array("q", [0]), array("I", [0, 1])
    none = array("I", [0, 0])
    with pytest.raises(IndexError):  # row 5 of 1
        cut_processes(times, one, array("i", [5]), times, times, array("i", [NONE]), none,
                      array("i"), none, array("i"), bytes(1))  # fmt: skip
    with pytest.raises(IndexError):  # child 3 of 1 process
        cut_processes(times, one, array("i", [1]), times, times, array("i", [NONE]), lists,
                      array("i", [3]), none, array("i"), bytes(1))  # fmt: skip
