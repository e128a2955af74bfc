# SPDX-License-Identifier: Apache-2.0
"""The passes over columns of libetrace.timing, against the same in plain Python."""

from __future__ import annotations

import heapq
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.timing.network import cut_processes, sort_edges
from libetrace.timing.schedule import find_slacks, run_network

NONE = -1
Graph = tuple[list[int], list[list[int]], list[int], list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Return work, what each segment follows, the slots that it needs, and the sizes of slots."""
    n = draw(st.integers(1, 12))
    work = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    before = [
        draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else []
        for i in range(n)
    ]
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=2))
    kind = draw(st.lists(st.integers(NONE, len(sizes) - 1), min_size=n, max_size=n))
    return work, before, kind, sizes


def columns(before: list[list[int]]) -> tuple[array[int], array[int]]:
    start, other = array("I", [0]), array("i")
    for each in before:
        other.extend(each)
        start.append(len(other))
    return start, other


def ends_by_object(graph: Graph) -> list[float]:
    """Run segments that hold their slot while they work; the lower number gets a slot first."""
    work, before, kind, free = *graph[:3], graph[3][:]
    left, end, waiting = [len(each) for each in before], [0.0] * len(work), list[int]()
    running: list[tuple[float, int]] = []
    ready, now = [i for i, n in enumerate(left) if not n], 0.0
    while True:
        waiting = sorted(waiting + ready)
        for i in waiting[:]:
            if kind[i] == NONE or free[kind[i]]:
                waiting.remove(i)
                if kind[i] != NONE:
                    free[kind[i]] -= 1
                heapq.heappush(running, (now + work[i], i))
        if not running:
            return end
        now, done = heapq.heappop(running)
        end[done] = now
        if kind[done] != NONE:
            free[kind[done]] += 1
        ready = []
        for i, each in enumerate(before):
            if done in each:
                left[i] -= 1
                ready += [] if left[i] else [i]


@settings(deadline=None)
@given(graphs())
def test_segments_run_as_in_plain_python(graph: Graph) -> None:
    work, before, kind, sizes = graph
    n, (start, other) = len(work), columns(before)
    kinds, traced = array("i", kind), array("q", range(n))
    begin, end, order, waited = run_network(
        start, other, array("d", work), traced, kinds, kinds, bytes(n), sizes, None
    )
    assert list(end) == ends_by_object(graph)
    assert [e - b for b, e in zip(begin, end, strict=True)] == work
    assert sorted(order) == list(range(n))
    assert [end[i] for i in order] == sorted(end)
    for i, each in enumerate(waited):
        assert begin[i] == (0 if each == NONE else end[each])


@settings(deadline=None)
@given(graphs())
def test_a_segment_may_end_later_by_its_slack_and_no_more(graph: Graph) -> None:
    work, before, _, _ = graph
    n, (start, other) = len(work), columns(before)
    none = array("i", [NONE]) * n

    def ends(times: list[float]) -> tuple[array[float], array[int]]:
        traced = array("q", bytes(8 * n))
        found = run_network(start, other, array("d", times), traced, none, none, bytes(n), [], None)
        return found[1], found[2]

    end, order = ends([float(each) for each in work])
    slack = find_slacks(start, other, order, end, array("d", work))
    for i in range(n):
        for more in (0, 1):
            times = [each + (slack[i] + more) * (i == at) for at, each in enumerate(work)]
            assert max(ends(times)[0]) == max(end) + more


def test_segments_that_wait_for_each_other_do_not_end() -> None:
    none = array("i", [NONE, NONE])
    found = run_network(
        array("I", [0, 1, 2]), array("i", [1, 0]), array("d", [1, 1]), array("q", [0, 0]), none,
        none, bytes(2), [], None,
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
            array("q", [0]), array("i", [NONE]), array("i", [NONE]), bytes(1), [], None,
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
