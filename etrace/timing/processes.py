# SPDX-License-Identifier: Apache-2.0
"""A database -> its processes, and the segments in which each of them worked.

A process works from its first event to its last, cut where it executes another program, forks a
child or sees one end. What lies between two cuts is a segment. A segment at whose end a child
ended was spent waiting for that child, so its length is no work of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from libetrace.image.file import Image

from etrace.spec.database import NONE

#: programs that run jobs side by side, in an order of dependencies that they know
SCHEDULERS = frozenset(b"make gmake ninja samu scons".split())


class Cut(IntEnum):
    """What happened in a process at a time."""

    EXEC = 0
    FORK = 1
    CHILD_ENDED = 2
    WRITER_ENDED = 3  # of a pipe that it reads


@dataclass(slots=True)
class Process:
    """One upid: its executions are the rows from `first` up to `end`; times since the trace began.

    `parent` is the number of a process, NONE at a root.
    """

    first: int
    end: int
    start_ns: int
    end_ns: int
    parent: int
    is_scheduler: bool
    depth: int = 0
    holds_scheduler: bool = False
    children: list[int] = field(default_factory=list)


class Processes:
    """All processes of an image, by their first row; NONE is the number of no process."""

    def __init__(self, image: Image) -> None:
        self.image = image
        executions = image["executions"]
        self._starts = executions["start_ns"].tolist()
        self._elapsed = executions["elapsed_ns"].tolist()
        #: number of the process of each execution
        self.of_row: list[int] = []
        self.all: list[Process] = list(self._read(executions["upid"].tolist()))
        self._adopt(executions["parent"].tolist())

    def __getitem__(self, number: int) -> Process:
        return self.all[number]

    def __len__(self) -> int:
        return len(self.all)

    def row_start(self, row: int) -> int:
        """Return when an execution began."""
        return self._starts[row]

    def row_end(self, row: int) -> int:
        """Return when an execution ended."""
        return self._starts[row] + self._elapsed[row]

    def _read(self, upid: list[int]) -> Iterator[Process]:
        binary = self.image["executions"]["binary"].tolist()
        schedulers: dict[int, bool] = {NONE: False}
        first, number = 0, 0
        for row in range(len(upid)):
            self.of_row.append(number)
            if row + 1 < len(upid) and upid[row + 1] == upid[row]:
                continue
            last = binary[row]
            if last not in schedulers:
                name = self.image.path_string(last).rpartition(b"/")[2]
                schedulers[last] = name in SCHEDULERS
            end_ns = max(self.row_end(row), self._starts[first])
            yield Process(first, row + 1, self._starts[first], end_ns, NONE, schedulers[last])
            first, number = row + 1, number + 1

    def _adopt(self, parent: list[int]) -> None:
        """Join children to parents, the earlier fork first; a process that began later is none."""
        by_start = sorted(range(len(self.all)), key=lambda n: (self.all[n].start_ns, n))
        place = {number: at for at, number in enumerate(by_start)}
        for number in by_start:
            own = self.all[number]
            above = parent[own.first]
            if above == NONE or place[self.of_row[above]] >= place[number]:
                continue
            own.parent = self.of_row[above]
            own.depth = self.all[own.parent].depth + 1
            self.all[own.parent].children.append(number)
        for number in reversed(by_start):
            own = self.all[number]
            if own.parent != NONE and (own.is_scheduler or own.holds_scheduler):
                self.all[own.parent].holds_scheduler = True

    def jobs_of_common(self, a: int, b: int) -> tuple[int, int]:
        """Return the children, above or at two processes, of the scheduler nearest to both.

        (NONE, NONE) when their nearest common ancestor is no scheduler.
        """
        below_a = below_b = NONE
        own_a, own_b = self.all[a], self.all[b]
        while a != b:
            if own_a.depth >= own_b.depth:
                below_a, a = a, own_a.parent
                own_a = self.all[a]
            else:
                below_b, b = b, own_b.parent
                own_b = self.all[b]
            if NONE in (a, b):
                return NONE, NONE
        return (below_a, below_b) if own_a.is_scheduler else (NONE, NONE)

    def leaf_jobs(self, a: int, b: int) -> tuple[int, int]:
        """Return the leaf jobs that two processes belong to, NONE for what belongs to none."""
        return self.leaf_job(a), self.leaf_job(b)

    def is_leaf_job(self, number: int) -> bool:
        """Tell whether a process is a child of a scheduler and has none below it."""
        own = self.all[number]
        if own.parent == NONE or own.is_scheduler or own.holds_scheduler:
            return False
        return self.all[own.parent].is_scheduler

    def leaf_job(self, number: int) -> int:
        """Return the leaf job above or at a process, NONE without one."""
        while number != NONE and not self.is_leaf_job(number):
            number = self.all[number].parent
        return number
