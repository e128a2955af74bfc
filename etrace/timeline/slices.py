# SPDX-License-Identifier: Apache-2.0
"""Executions -> slices on lanes; on a lane slices lie inside each other or one after the other.

`TREE`: a child lies inside the execution that forked it, as far as one lane can show; siblings that
run at the same time get lanes of their own. `PACKED`: only executions that start no others, on as
few lanes as possible, so that the number of lanes is that of commands that ran at once. A thread
has a slice, on a lane of its own, when there is something inside it to show.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from libetrace.depend.execution_facts import find_parents, find_thread_owners
from libetrace.image.file import Image

from etrace.query.rows.commands import shown_executions
from etrace.query.rows.labels import Labels
from etrace.redaction.build import Redaction
from etrace.spec.database import NONE

#: bytes of a command that a slice shows
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


def shown_rows(image: Image, threads: Iterable[int] = ()) -> list[int]:
    """Return executions with a program and those of processes that ran none, by start."""
    executions = image["executions"]
    start, elapsed = (executions[name].tolist() for name in ("start_ns", "elapsed_ns"))
    rows = [*shown_executions(image), *threads]
    rows.sort(key=elapsed.__getitem__, reverse=True)  # of those that begin at once, the longest
    rows.sort(key=start.__getitem__)
    return rows


def is_leaf(image: Image) -> list[bool]:
    """Return for each execution whether it, with its threads, started no process."""
    return [not has_children for has_children in find_parents(image)]


def slices(image: Image, lanes: Lanes, inside: Inside | None = None) -> Iterator[Slice]:
    """Yield the slices by start; what lies inside an execution follows it at once."""
    executions, owner = image["executions"], find_thread_owners(image)
    redaction = Redaction(image)
    labels = Labels(image, redaction.words)
    threads = {row for row, own in enumerate(owner) if own != row and inside and any(inside(row))}
    rows = shown_rows(image, threads)
    if lanes is Lanes.PACKED:
        leaf = is_leaf(image)
        rows = [row for row in rows if leaf[row] and executions["binary"][row] != NONE]
    names = ("start_ns", "elapsed_ns", "upid")
    start, elapsed, upid = (executions[name].tolist() for name in names)
    command = _Commands(labels)
    parents = [NONE if row == NONE else owner[row] for row in executions["parent"].tolist()]
    for row in threads:
        parents[row] = NONE
    places = _Lanes(parents, is_nested=lanes is Lanes.TREE)
    for row in rows:
        begin, end = start[row], start[row] + elapsed[row]
        lane = places.place(row, begin, end)
        details = (("command", command.of(row)), ("pid", upid[row] & PID_MASK))
        name = f"{labels.program(row)} (thread)" if row in threads else labels.of(row)
        yield Slice(lane, begin, end, name, "execution", details)
        for each in inside(row) if inside is not None else ():
            first, last = max(each.start_ns, begin), min(each.end_ns, end)
            if first <= last:
                name = redaction.text(each.name)
                yield Slice(lane, first, last, name, each.category, each.details)


class _Commands:
    """What slices show of commands; equal commands are one text."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._texts: dict[tuple[int, bytes], str] = {}

    def of(self, row: int) -> str:
        """Return the beginning of a command."""
        key = self._labels.command(row)
        if key not in self._texts:
            words = b" ".join(self._labels.arguments(row))
            self._texts[key] = os.fsdecode(words[:MAX_COMMAND])
        return self._texts[key]


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
