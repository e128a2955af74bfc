# SPDX-License-Identifier: Apache-2.0
"""Processes and dependencies -> a network of segments: what had to end before what could begin.

A process does its segments one after the other. A child begins when the segment that forked it has
ended, and a segment after a child's end begins when the child has ended. A scheduler is different:
its children begin after its first segment and after the jobs that they depend on, and only its last
segment waits for them all. Its own work before a job belongs to that job.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from libetrace.image.file import Image
from libetrace.timing.network import Edges, cut_processes, sort_edges

from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.processes import Processes, as_lists


class Reason(StrEnum):
    """Why a segment could not begin before another had ended; columns have the place."""

    SAME = "the same process"
    FORK = "was started by it"
    CHILD = "waited for its child"
    PIPE = "read its pipe"
    FILE = "used its file"


REASONS = tuple(Reason)
USED_FILE = REASONS.index(Reason.FILE)


@dataclass(slots=True)
class Network:
    """Segments by number, as columns; `before(i)` are those that i follows.

    `job` is the process of the job that a segment begins, NONE for all others; `last_of_job` the
    segment with which it ends. A job is a child of a scheduler. `waited` is the place in REASONS of
    why a segment was spent waiting, NONE for all others. `readers` are processes that read what a
    process wrote that outlived them: their sleep was a wait for it.
    """

    processes: Processes
    execution: array[int] = field(default_factory=lambda: array("i"))
    begin_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    work_ns: array[int] = field(default_factory=lambda: array("q"))
    job: array[int] = field(default_factory=lambda: array("i"))
    waited: array[int] = field(default_factory=lambda: array("b"))
    last_of_job: dict[int, int] = field(default_factory=dict)
    readers: set[int] = field(default_factory=set)
    #: what segment i follows is from `start[i]` to `start[i + 1]` of the other columns
    start: array[int] = field(default_factory=lambda: array("I", [0]))
    other: array[int] = field(default_factory=lambda: array("i"))
    reason: array[int] = field(default_factory=lambda: array("b"))
    path: array[int] = field(default_factory=lambda: array("i"))

    def add(self, execution: int, begin: int, end: int, job: int) -> int:
        """Append a segment that worked all the time; returns its number."""
        self.execution.append(execution)
        self.begin_ns.append(begin)
        self.end_ns.append(end)
        self.work_ns.append(end - begin)
        self.job.append(job)
        self.waited.append(NONE)
        return len(self.execution) - 1

    def join(self, edges: Edges) -> None:
        """Say what the segments follow, when all are there."""
        self.start, self.other, self.reason, self.path = sort_edges(*edges, len(self))

    def before(self, segment: int) -> Iterator[tuple[int, Reason, int]]:
        """Yield (number, reason, row of `paths` or NONE) of what a segment follows."""
        for at in range(self.start[segment], self.start[segment + 1]):
            yield self.other[at], REASONS[self.reason[at]], self.path[at]

    def __len__(self) -> int:
        return len(self.execution)

    def slot_wait_ns(self, segment: int) -> int:
        """Return how long a job could have run and did not, while others of its kind ran."""
        job = self.job[segment]
        if job == NONE or not self.processes.is_leaf_job(job):
            return 0
        ready = max(self.end_ns[other] for other, _, _ in self.before(segment))
        return max(self.begin_ns[segment] - ready, 0)


def build_network(image: Image) -> Network:
    """Return the network of a build."""
    of = processes = Processes(image)
    writers, readers = _pipe_writers(image, processes)
    writer_start, writer = as_lists(writers.get(n, ()) for n in range(len(processes)))
    found, edges = cut_processes(
        image["executions"]["start_ns"], of.first, of.end, of.start_ns, of.end_ns, of.parent,
        of.child_start, of.child, writer_start, writer, of.is_scheduler,
    )  # fmt: skip
    last_of_job = {n: found.last[n] for n, above in enumerate(of.parent)
                   if above != NONE and of.is_scheduler[above]}  # fmt: skip
    network = Network(
        processes, found.execution, found.begin_ns, found.end_ns, found.work_ns, found.job,
        found.waited, last_of_job, readers,
    )  # fmt: skip
    order = find_dependencies(image, processes, children_of=of.is_scheduler)
    edges.path.extend(order.path)
    edges.after.extend(map(found.forked_by.__getitem__, order.after))
    edges.before.extend(map(found.last.__getitem__, order.before))
    edges.reason.extend([USED_FILE] * len(order.path))
    network.join(edges)
    return network


def _pipe_writers(image: Image, processes: Processes) -> tuple[dict[int, list[int]], set[int]]:
    """Return reader -> writers that ended before it, and readers that their writers outlived.

    They are the parts of a shell's pipeline, children of one process. A writer may end after its
    reader, as `cc1` does before `as`, which knows the end of its input when cc1 closes the pipe.
    """
    readers, of_row = image["pipe_readers"]["execution"], processes.of_row
    found, outlived = dict[int, list[int]](), set[int]()
    for row, (begin, end) in enumerate(pairwise(image["executions"]["readers.start"].tolist())):
        writer = of_row[row]
        for at in range(begin, end):
            reader = of_row[readers[at]]
            if not _are_beside(processes, writer, reader):
                continue
            if processes.end_ns[writer] < processes.end_ns[reader]:
                found.setdefault(reader, []).append(writer)
            else:
                outlived.add(reader)
    return found, outlived


def _are_beside(processes: Processes, writer: int, reader: int) -> bool:
    a, b = processes[writer], processes[reader]
    is_of_one_parent = a.parent == b.parent != NONE and writer != reader
    return is_of_one_parent and b.start_ns <= a.end_ns and a.start_ns <= b.end_ns
