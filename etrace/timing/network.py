# SPDX-License-Identifier: Apache-2.0
"""Processes and dependencies -> a network of segments: what had to end before what could begin.

A process does its segments one after the other. A child begins when the segment that forked it has
ended, and a segment after a child's end begins when the child has ended. A scheduler is different:
its children begin after its first segment and after the jobs that they depend on, and only its last
segment waits for them all. Its own work before a job belongs to that job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from libetrace.image.file import Image

from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.processes import Cut, Process, Processes


class Reason(StrEnum):
    """Why a segment could not begin before another had ended."""

    SAME = "the same process"
    FORK = "was started by it"
    CHILD = "waited for its child"
    PIPE = "read its pipe"
    FILE = "used its file"


@dataclass(slots=True)
class Network:
    """Segments by number; `before[i]` are (number, reason, row of `paths` or NONE) that i follows.

    `job` is the process of the job that a segment begins, NONE for all others; `last_of_job` the
    segment with which it ends. A job is a child of a scheduler.
    """

    processes: Processes
    execution: list[int] = field(default_factory=list)
    begin_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    work_ns: list[int] = field(default_factory=list)
    before: list[list[tuple[int, Reason, int]]] = field(default_factory=list)
    job: list[int] = field(default_factory=list)
    last_of_job: dict[int, int] = field(default_factory=dict)
    #: segments that were spent waiting, for what
    waited: dict[int, Reason] = field(default_factory=dict)
    #: processes that read what a process wrote that outlived them: their sleep was a wait for it
    readers: set[int] = field(default_factory=set)

    def add(self, execution: int, begin: int, end: int, work: int) -> int:
        """Append a segment; returns its number."""
        self.execution.append(execution)
        self.begin_ns.append(begin)
        self.end_ns.append(end)
        self.work_ns.append(work)
        self.before.append([])
        self.job.append(NONE)
        return len(self.execution) - 1

    def __len__(self) -> int:
        return len(self.execution)


def build_network(image: Image) -> Network:
    """Return the network of a build."""
    builder = _Builder(image)
    for number in range(len(builder.processes)):
        builder.cut(number)
    for number in range(len(builder.processes)):
        builder.join(number)
    builder.depend()
    return builder.network


#: by Cut
WAITS = (None, None, Reason.CHILD, Reason.PIPE)


class _Builder:
    def __init__(self, image: Image) -> None:
        self.image, self.processes = image, Processes(image)
        self.network = Network(self.processes)
        self.first: list[int] = []
        self.last: list[int] = []
        #: (segment that follows the end of a child or writer, that process, why)
        self.waits: list[tuple[int, int, Reason]] = []
        self.forked_by: dict[int, int] = {}
        self.writers = self._pipe_writers()

    def _pipe_writers(self) -> dict[int, list[int]]:
        """Return reader -> writers that ended before it: the parts of a shell's pipeline.

        They are children of one process. A writer may end after its reader, as `cc1` does behind
        `as`, which knows the end of its input when cc1 closes the pipe.
        """
        executions, readers = self.image["executions"], self.image["pipe_readers"]["execution"]
        start, of_row = executions["readers.start"].tolist(), self.processes.of_row
        found: dict[int, list[int]] = {}
        for row in range(len(of_row)):
            writer = of_row[row]
            for at in range(start[row], start[row + 1]):
                reader = of_row[readers[at]]
                if not self._are_beside(writer, reader):
                    continue
                if self.processes[writer].end_ns < self.processes[reader].end_ns:
                    found.setdefault(reader, []).append(writer)
                else:
                    self.network.readers.add(reader)
        return found

    def _are_beside(self, writer: int, reader: int) -> bool:
        a, b = self.processes[writer], self.processes[reader]
        is_of_one_parent = a.parent == b.parent != NONE and writer != reader
        return is_of_one_parent and b.start_ns <= a.end_ns and a.start_ns <= b.end_ns

    # ---- segments ----

    def cut(self, number: int) -> None:
        """Make the segments of one process."""
        own = self.processes[number]
        if own.is_scheduler and own.children:
            self._cut_scheduler(own)
            return
        at, row = own.start_ns, own.first
        self.first.append(len(self.network))
        due: list[tuple[int, Reason]] = []
        for cut_ns, cut, other in sorted(self._cuts(number, own)):
            time_ns = min(max(cut_ns, at), own.end_ns)
            reason = WAITS[cut]
            segment = self._segment(row, at, time_ns, 0 if reason else time_ns - at, due)
            at = time_ns
            if cut is Cut.EXEC:
                row = other
            elif cut is Cut.FORK:
                self.forked_by[other] = segment
            elif reason:
                self.network.waited[segment] = reason
                due.append((other, reason))
        self.last.append(self._segment(row, at, own.end_ns, own.end_ns - at, due))

    def _cuts(self, number: int, own: Process) -> list[tuple[int, Cut, int]]:
        processes = self.processes
        cuts = [(processes.row_start(row), Cut.EXEC, row) for row in range(own.first + 1, own.end)]
        for child in own.children:
            it = processes[child]
            cuts.append((it.start_ns, Cut.FORK, child))
            if it.end_ns <= own.end_ns:
                cuts.append((it.end_ns, Cut.CHILD_ENDED, child))
        for writer in self.writers.get(number, ()):
            ended = processes[writer].end_ns
            cuts.append((ended, Cut.WRITER_ENDED, writer))
        return cuts

    def _segment(
        self, row: int, begin: int, end: int, work: int, due: list[tuple[int, Reason]]
    ) -> int:
        segment = self.network.add(row, begin, end, work)
        if len(self.first) > len(self.last) and segment > self.first[-1]:
            self.network.before[segment].append((segment - 1, Reason.SAME, NONE))
        if due:
            self.waits.extend((segment, other, reason) for other, reason in due)
            due.clear()
        return segment

    def _cut_scheduler(self, own: Process) -> None:
        """First its work before the first job, then that before each other job, then the rest.

        It did that while no job was running: at other times it works beside its jobs.
        """
        row, at = own.end - 1, own.start_ns
        self.first.append(len(self.network))
        children = [self.processes[child] for child in own.children]
        opening = self.network.add(row, at, children[0].start_ns, children[0].start_ns - at)
        free_from = 0
        for child, it in zip(own.children, children, strict=True):
            gap = max(it.start_ns - free_from, 0) if free_from else 0
            before = self.network.add(row, it.start_ns - gap, it.start_ns, gap)
            self.network.before[before].append((opening, Reason.SAME, NONE))
            self.forked_by[child] = before
            free_from = max(free_from, it.end_ns)
        begin = min(max(free_from, at), own.end_ns)
        last = self.network.add(row, begin, own.end_ns, own.end_ns - begin)
        self.network.before[last].append((opening, Reason.SAME, NONE))
        ended = (child for child in own.children if self.processes[child].end_ns <= own.end_ns)
        self.waits.extend((last, child, Reason.CHILD) for child in ended)
        self.last.append(last)

    # ---- edges ----

    def join(self, number: int) -> None:
        """Let a process begin after the segment that forked it; mark it when it is a job."""
        parent = self.processes[number].parent
        if parent == NONE:
            return
        forked_by = self.forked_by[number]
        self.network.before[self.first[number]].append((forked_by, Reason.FORK, NONE))
        if self.processes[parent].is_scheduler:
            self.network.job[forked_by] = number
            self.network.last_of_job[number] = self.last[number]

    def depend(self) -> None:
        """Add the waits for children and pipes, and the dependencies between jobs."""
        for segment, other, reason in self.waits:
            self.network.before[segment].append((self.last[other], reason, NONE))
        for each in find_dependencies(self.image, self.processes, self.processes.jobs_of_common):
            begin = self.forked_by[each.after]
            edge = (self.last[each.before], Reason.FILE, each.path)
            self.network.before[begin].append(edge)
