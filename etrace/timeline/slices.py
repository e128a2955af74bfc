# SPDX-License-Identifier: Apache-2.0
"""Executions -> slices on lanes; on a lane slices lie inside each other or one after the other.

`TREE`: a child lies inside the execution that forked it, as far as one lane can show; siblings that
run at the same time get lanes of their own. `PACKED`: only executions that start no others, on as
few lanes as possible, so that the number of lanes is that of commands that ran at once.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.query.classes.labels import Labels
from etrace.spec.database import NONE

#: bytes of a command that a slice tells
MAX_COMMAND = 200
PID_MASK = (1 << 22) - 1


class Lanes(Enum):
    """How executions are put on lanes."""

    TREE = "tree"
    PACKED = "packed"


class Slice(NamedTuple):
    """Something that took time, in ns since the trace began; `details` are shown on demand."""

    lane: int
    start_ns: int
    end_ns: int
    name: str
    category: str
    details: tuple[tuple[str, str | int], ...] = ()


#: what an execution did inside, by its row: slices in order of start, an outer one first
Inside = Callable[[int], Iterable[Slice]]


def shown_rows(image: Image) -> list[int]:
    """Return executions with a program and those of processes that ran none, by start."""
    executions = image["executions"]
    upid, binary, start = executions["upid"], executions["binary"], executions["start_ns"]
    n = executions.n_rows
    rows = [
        row for row in range(n)
        if binary[row] != NONE or row + 1 == n or upid[row + 1] != upid[row]
    ]  # fmt: skip
    elapsed = executions["elapsed_ns"]
    rows.sort(key=lambda row: (start[row], -elapsed[row], row))
    return rows


def is_leaf(image: Image) -> list[bool]:
    """Return for each execution whether it forked nothing."""
    start = image["executions"]["children.start"].tolist()
    return [a == b for a, b in pairwise(start)]


def slices(image: Image, lanes: Lanes, inside: Inside | None = None) -> Iterator[Slice]:
    """Yield the slices by start; what lies inside an execution follows it at once."""
    rows, executions, labels = shown_rows(image), image["executions"], Labels(image)
    if lanes is Lanes.PACKED:
        leaf = is_leaf(image)
        rows = [row for row in rows if leaf[row] and executions["binary"][row] != NONE]
    start, elapsed, upid = executions["start_ns"], executions["elapsed_ns"], executions["upid"]
    places = _Lanes(executions["parent"].tolist(), is_nested=lanes is Lanes.TREE)
    for row in rows:
        begin, end = start[row], start[row] + elapsed[row]
        lane = places.place(row, begin, end)
        command = os.fsdecode(b" ".join(labels.arguments(row))[:MAX_COMMAND])
        details = (("command", command), ("pid", upid[row] & PID_MASK))
        yield Slice(lane, begin, end, labels.of(row), "execution", details)
        for each in inside(row) if inside is not None else ():
            first, last = max(each.start_ns, begin), min(each.end_ns, end)
            if first <= last:
                yield Slice(lane, first, last, each.name, each.category, each.details)


class _Lanes:
    """Open slices of each lane, as (execution, end), the outermost first."""

    def __init__(self, parent: list[int], *, is_nested: bool) -> None:
        self.parent, self.is_nested = parent, is_nested
        self.open: list[list[tuple[int, int]]] = []
        self.lane_of: dict[int, int] = {}
        self.free: list[tuple[int, int]] = []  # end of the outermost slice, lane

    def place(self, row: int, begin: int, end: int) -> int:
        """Return the lane of an execution; they come in the order of their begins."""
        lane = self._of_parent(row, begin, end) if self.is_nested else NONE
        if lane == NONE:
            lane = self._unused(begin)
            heapq.heappush(self.free, (end, lane))
        self.open[lane].append((row, end))
        self.lane_of[row] = lane
        return lane

    def _of_parent(self, row: int, begin: int, end: int) -> int:
        parent = self.parent[row]
        lane = self.lane_of.get(parent, NONE)
        if lane == NONE:
            return NONE
        stack = self.open[lane]
        while stack and stack[-1][1] <= begin and stack[-1][0] != parent:
            stack.pop()
        is_inside = stack and stack[-1][0] == parent and end <= stack[-1][1]
        return lane if is_inside else NONE

    def _unused(self, begin: int) -> int:
        if self.free and self.free[0][0] <= begin:
            lane = heapq.heappop(self.free)[1]
            self.open[lane].clear()
            return lane
        self.open.append([])
        return len(self.open) - 1
