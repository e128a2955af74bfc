# SPDX-License-Identifier: Apache-2.0
"""A database -> its processes, and the segments in which each of them worked.

A process works from its first event to its last, cut where it executes another program, forks a
child or sees one end. What lies between two cuts is a segment. A segment at whose end a child
ended was spent waiting for that child, so its length is no work of its own. Threads are no
processes: what one starts is a child of its process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from libetrace.depend.threads import find_thread_owners
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

    `parent` is the number of a process, NONE at a root. A thread that executes a program goes on as
    a child of its process. `n_threads` is how many threads the process had besides its first.
    """

    first: int
    end: int
    start_ns: int
    end_ns: int
    parent: int
    is_scheduler: bool
    depth: int = 0
    holds_scheduler: bool = False
    n_threads: int = 0
    children: list[int] = field(default_factory=list)


class Processes:
    """All processes of an image, by their first row; NONE is the number of no process."""

    def __init__(self, image: Image) -> None:
        self.image = image
        executions = image["executions"]
        self._starts = executions["start_ns"].tolist()
        self._elapsed = executions["elapsed_ns"].tolist()
        owner = find_thread_owners(image)
        #: number of the process of each execution
        self.of_row: list[int] = [NONE] * executions.n_rows
        self.all: list[Process] = list(self._read(executions["upid"].tolist(), owner))
        self._take_threads(owner)
        self._adopt(executions["parent"].tolist())

    def __getitem__(self, number: int) -> Process:
        return self.all[number]

    def __len__(self) -> int:
        return len(self.all)

    def spans(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the begin and end of some processes."""
        return ((self.all[number].start_ns, self.all[number].end_ns) for number in numbers)

    def row_start(self, row: int) -> int:
        """Return when an execution began."""
        return self._starts[row]

    def row_end(self, row: int) -> int:
        """Return when an execution ended."""
        return self._starts[row] + self._elapsed[row]

    def _read(self, upid: list[int], owner: Sequence[int]) -> Iterator[Process]:
        binary = self.image["executions"]["binary"].tolist()
        schedulers: dict[int, bool] = {NONE: False}
        first, number = 0, 0
        for row in range(len(upid)):
            if owner[row] != row:
                first = row + 1
                continue
            self.of_row[row] = number
            if row + 1 < len(upid) and upid[row + 1] == upid[row]:
                continue
            last = binary[row]
            if last not in schedulers:
                name = self.image.path_string(last).rpartition(b"/")[2]
                schedulers[last] = name in SCHEDULERS
            end_ns = max(self.row_end(row), self._starts[first])
            yield Process(first, row + 1, self._starts[first], end_ns, NONE, schedulers[last])
            first, number = row + 1, number + 1

    def _take_threads(self, owner: Sequence[int]) -> None:
        """Count threads, and let a process last as long as they do."""
        status, upid = (self.image["executions"][name] for name in ("status", "upid"))
        for row, above in enumerate(owner):
            if above == row:
                continue
            self.of_row[row] = self.of_row[above]
            own = self.all[self.of_row[row]]
            own.n_threads += 1
            last = row  # what a thread executes goes on as its process
            while last + 1 < len(upid) and upid[last + 1] == upid[row]:
                last += 1
            if last != row or status[row] != NONE:  # else its end is not known
                own.end_ns = max(own.end_ns, self.row_end(last))

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
        """Return the same as children_of_common(), (NONE, NONE) when that is no scheduler's."""
        below = self.children_of_common(a, b)
        if below[0] == NONE or not self.all[self.all[below[0]].parent].is_scheduler:
            return NONE, NONE
        return below

    def children_of_common(self, a: int, b: int) -> tuple[int, int]:
        """Return the children, above or at two processes, of their nearest common ancestor.

        (NONE, NONE) when one is above the other, or they have none.
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
        return (NONE, NONE) if NONE in (below_a, below_b) else (below_a, below_b)

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


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """Return how many of some spans of time there are at once, at most."""
    most = now = 0
    for _, change in sorted(change for begin, end in spans for change in ((begin, 1), (end, -1))):
        now += change
        most = max(most, now)
    return most
