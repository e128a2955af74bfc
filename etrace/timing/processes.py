# SPDX-License-Identifier: Apache-2.0
"""A database -> its processes, and the segments in which each of them worked.

A process works from its first event to its last, cut where it executes another program, forks a
child or sees one end. What lies between two cuts is a segment. A segment at whose end a child
ended was spent waiting for that child, so its length is not its own work. Threads are no
processes: what one starts is a child of its process.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.rules.goals import BUILDERS
from etrace.spec.database import NONE

#: programs that run jobs side by side, in an order of dependencies that they know
SCHEDULERS = frozenset((*BUILDERS, b"scons"))


class Process(NamedTuple):
    """One upid: its executions are the rows from `first` up to `end`; times since the trace began.

    `parent` is the number of a process, NONE at a root. A thread that executes a program goes on as
    a child of its process. `n_threads` is how many threads the process had besides its first.
    """

    first: int
    end: int
    start_ns: int
    end_ns: int
    parent: int
    depth: int
    n_threads: int
    is_scheduler: bool
    holds_scheduler: bool
    children: Sequence[int]


def as_lists(lists: Iterable[Sequence[int]]) -> tuple[array[int], array[int]]:
    """Return where each list starts, and all of them."""
    start, items = array("I", [0]), array("i")
    for each in lists:
        items.extend(each)
        start.append(len(items))
    return start, items


class Processes:
    """All processes of an image, by their first row, as columns; NONE is the number of no process.

    The children of i are `child[child_start[i]:child_start[i + 1]]`, the earlier fork first.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        executions = image["executions"]
        owner = find_thread_owners(image)
        #: number of the process of each execution
        self.of_row = array("i", [NONE]) * executions.n_rows
        self.first, self.end = array("i"), array("i")
        self.start_ns, self.end_ns = array("q"), array("q")
        self.is_scheduler = bytearray()
        self._read(owner)
        nothing = array("i", [0]) * len(self)
        self.parent = array("i", [NONE]) * len(self)
        self.depth, self.n_threads = nothing[:], nothing[:]
        self.holds_scheduler = bytearray(len(self))
        self._take_threads(owner)
        self.child_start, self.child = self._adopt()

    def __getitem__(self, number: int) -> Process:
        return Process(
            self.first[number], self.end[number], self.start_ns[number], self.end_ns[number],
            self.parent[number], self.depth[number], self.n_threads[number],
            bool(self.is_scheduler[number]), bool(self.holds_scheduler[number]),
            self.child[self.child_start[number] : self.child_start[number + 1]],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Process]:
        return map(self.__getitem__, range(len(self)))

    def __len__(self) -> int:
        return len(self.first)

    def spans(self, numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the begin and end of some processes."""
        return ((self.start_ns[number], self.end_ns[number]) for number in numbers)

    def row_start(self, row: int) -> int:
        """Return when an execution began."""
        return int(self.image["executions"]["start_ns"][row])

    def row_end(self, row: int) -> int:
        """Return when an execution ended."""
        return self.row_start(row) + int(self.image["executions"]["elapsed_ns"][row])

    def _read(self, owner: Sequence[int]) -> None:
        executions, of_row = self.image["executions"], self.of_row
        upid, starts = executions["upid"], executions["start_ns"]
        elapsed, binary = executions["elapsed_ns"], executions["binary"]
        schedulers, after = {NONE: False}, [*upid[1:], None]
        first = number = 0
        for row, (own, next_one, last) in enumerate(zip(upid, after, binary, strict=True)):
            if owner[row] != row:
                first = row + 1
                continue
            of_row[row] = number
            if own == next_one:
                continue
            if last not in schedulers:
                name = self.image.path_string(last).rpartition(b"/")[2]
                schedulers[last] = name in SCHEDULERS
            start_ns = starts[first]
            self.first.append(first)
            self.end.append(row + 1)
            self.start_ns.append(start_ns)
            self.end_ns.append(max(starts[row] + elapsed[row], start_ns))
            self.is_scheduler.append(schedulers[last])
            first, number = row + 1, number + 1

    def _take_threads(self, owner: Sequence[int]) -> None:
        """Count threads, and let a process last as long as they do."""
        status, upid = (self.image["executions"][name] for name in ("status", "upid"))
        for row, above in enumerate(owner):
            if above == row:
                continue
            number = self.of_row[row] = self.of_row[above]
            self.n_threads[number] += 1
            last = row  # what a thread executes goes on as its process
            while last + 1 < len(upid) and upid[last + 1] == upid[row]:
                last += 1
            if last != row or status[row] != NONE:  # else its end is not known
                self.end_ns[number] = max(self.end_ns[number], self.row_end(last))

    def _adopt(self) -> tuple[array[int], array[int]]:
        """Join children to parents, the earlier fork first; a later process is not one."""
        above, of_row, n = self.image["executions"]["parent"], self.of_row, len(self)
        by_start = array("i", sorted(range(n), key=self.start_ns.__getitem__))
        place = array("i", by_start)
        for at, number in enumerate(by_start):
            place[number] = at
        parent, depth, start = self.parent, self.depth, array("I", [0]) * (n + 1)
        for number in by_start:
            row = above[self.first[number]]
            if row == NONE or place[of_row[row]] >= place[number]:
                continue
            parent[number] = own = of_row[row]
            depth[number] = depth[own] + 1
            start[own + 1] += 1
        for number in reversed(by_start):
            is_above = self.is_scheduler[number] or self.holds_scheduler[number]
            if is_above and parent[number] != NONE:
                self.holds_scheduler[parent[number]] = True
        return self._children(by_start, start)

    def _children(self, by_start: array[int], start: array[int]) -> tuple[array[int], array[int]]:
        """Return the lists of children; `start` has their lengths, each one place further."""
        for number in range(len(self)):
            start[number + 1] += start[number]
        at, child = start[:], array("i", [NONE]) * start[-1]
        for number in by_start:
            if (own := self.parent[number]) != NONE:
                child[at[own]] = number
                at[own] += 1
        return start, child

    def children_of_common(self, a: int, b: int) -> tuple[int, int]:
        """Return the children, above or at two processes, of their nearest common ancestor.

        (NONE, NONE) when one is above the other, or they have none.
        """
        below_a = below_b = NONE
        while a != b:
            if self.depth[a] >= self.depth[b]:
                below_a, a = a, self.parent[a]
            else:
                below_b, b = b, self.parent[b]
            if NONE in (a, b):
                return NONE, NONE
        return (NONE, NONE) if NONE in (below_a, below_b) else (below_a, below_b)

    def is_leaf_job(self, number: int) -> bool:
        """Return whether a process is a child of a scheduler and has none below it."""
        above = self.parent[number]
        if above == NONE or self.is_scheduler[number] or self.holds_scheduler[number]:
            return False
        return bool(self.is_scheduler[above])

    @cached_property
    def leaf_job(self) -> array[int]:
        """The leaf job above or at each process, NONE without one."""
        found = array("i", [NONE]) * len(self)
        for number in sorted(range(len(self)), key=self.depth.__getitem__):
            above = self.parent[number]
            if self.is_leaf_job(number):
                found[number] = number
            elif above != NONE:
                found[number] = found[above]
        return found


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """Return how many of some spans of time there are at once, at most."""
    most = now = 0
    for _, change in sorted(change for begin, end in spans for change in ((begin, 1), (end, -1))):
        now += change
        most = max(most, now)
    return most
