# SPDX-License-Identifier: Apache-2.0
"""Processes and dependencies -> a network of segments: what had to end before what could begin.

A process does its segments one after the other. A child begins when the segment that forked it has
ended, and a segment after a child's end begins when the child has ended. A scheduler is different:
its children begin after its first segment and after the jobs that they depend on, and only its last
segment waits for them all. Its own work before a job belongs to that job. Jobs depend on each other
by files (dependencies.py) and by the rules of their make (recipe_order.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from libetrace.image.file import Image
from libetrace.timing.network import Edges, cut_processes, sort_edges

from etrace.rules.goals import SLACK_NS
from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.processes import Processes, as_lists
from etrace.timing.recipe_order import RecipeOrder


class Reason(StrEnum):
    """Why a segment could not begin before another had ended; columns have the place."""

    SAME = "the same process"
    FORK = "was started by it"
    CHILD = "waited for its child"
    PIPE = "read its pipe"
    FILE = "used its file"
    LINE = "is the next line of its recipe"
    RULE = "needs its target"
    FUNCTION = "came after it in make"


REASONS = tuple(Reason)
USED_FILE = REASONS.index(Reason.FILE)
NEXT_LINE, NEEDED = REASONS.index(Reason.LINE), REASONS.index(Reason.RULE)
OF_FUNCTION, SAME = REASONS.index(Reason.FUNCTION), REASONS.index(Reason.SAME)


@dataclass(slots=True)
class Network:
    """Segments by number, as columns; `before(i)` are those that i follows.

    `job` is the process of the job that a segment begins, NONE for all others; `last_of_job` the
    segment with which it ends. A job is a child of a scheduler. `waited` is the place in REASONS of
    why a segment was spent waiting, NONE for all others. `readers` are processes that read what a
    process wrote that outlived them: their sleep was a wait for it. `later_lines` are jobs that
    begin as soon as the line before them has ended, and `last_line` has the last job of a recipe by
    its first. `functions` are jobs that make itself waits for.
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
    later_lines: set[int] = field(default_factory=set)
    last_line: dict[int, int] = field(default_factory=dict)
    functions: set[int] = field(default_factory=set)
    order: RecipeOrder | None = None
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


def build_network(
    image: Image, order: RecipeOrder | None = None, *, is_cautious: bool = False
) -> Network:
    """Return the network of a build; `order` is what is known of the rules of its makes.

    With `is_cautious`, a job for which no rule is known waits for what had ended before it began.
    """
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
        found.waited, last_of_job, readers, order=order,
    )  # fmt: skip
    used = find_dependencies(image, processes, children_of=of.is_scheduler)
    edges.path.extend(used.path)
    edges.after.extend(map(found.forked_by.__getitem__, used.after))
    edges.before.extend(map(found.last.__getitem__, used.before))
    edges.reason.extend([USED_FILE] * len(used.path))
    if order is not None:
        jobs = {job: (found.forked_by[job], last) for job, last in last_of_job.items()}
        follower = _Follower(network, edges, order, jobs)
        follower.follow()
        if is_cautious:
            follower.follow_the_trace()
    network.join(edges)
    return network


def unknown_makes(network: Network) -> dict[int, str]:
    """Return makes and their like with several jobs whose rules are not known, and why."""
    processes, order = network.processes, network.order or RecipeOrder()
    parent, found = processes.image["executions"]["parent"], dict[int, str]()
    for number, is_scheduler in enumerate(processes.is_scheduler):
        children = processes[number].children if is_scheduler else ()
        jobs = [each for each in children if each not in network.functions]
        n_jobs = Counter(int(parent[processes.first[each]]) for each in jobs)
        for row, n in n_jobs.items():
            if n > 1 and row not in order.known:
                found[row] = order.unknown.get(row, "")
    return found


def follow_recipes(
    network: Network, edges: Edges, order: RecipeOrder, jobs: Mapping[int, tuple[int, int]]
) -> None:
    """Let jobs, each with its first and last segment, follow each other as the rules say.

    What overlapped in the traced build, or ran the other way round, did not wait.
    """
    _Follower(network, edges, order, jobs).follow()


class _End(NamedTuple):
    """A segment with which something ends, when, and when the last job of it began.

    What follows it began after that job, so that there is no ring.
    """

    segment: int
    time_ns: int
    start_ns: int


class _Follower:
    """Adds what follows what, and segments without work where many wait for many."""

    def __init__(
        self, network: Network, edges: Edges, order: RecipeOrder,
        jobs: Mapping[int, tuple[int, int]],
    ) -> None:  # fmt: skip
        self._network, self._edges, self._order, self._jobs = network, edges, order, jobs
        self._processes = network.processes

    def follow(self) -> None:
        """Add all."""
        self._follow_rules()
        self._follow_functions()

    def follow_the_trace(self) -> None:
        """Let each job that no rule orders wait for the last one that ended before it began."""
        of, known = self._processes, self._order.known
        strays = set(map(self._number, self._order.strays))
        parent = of.image["executions"]["parent"]
        for number, is_scheduler in enumerate(of.is_scheduler):
            if not is_scheduler:
                continue
            children = [each for each in of[number].children if each in self._jobs]
            by_end = sorted(children, key=of.end_ns.__getitem__)
            ends = [of.end_ns[each] for each in by_end]
            for child in children:
                at = bisect_right(ends, of.start_ns[child]) - 1
                is_known = parent[of.first[child]] in known and child not in strays
                if at >= 0 and not is_known and of.start_ns[by_end[at]] < of.start_ns[child]:
                    self._edge(self._jobs[child][0], self._jobs[by_end[at]][1], SAME)

    def _edge(self, after: int, before: int, reason: int) -> None:
        self._edges.after.append(after)
        self._edges.before.append(before)
        self._edges.reason.append(reason)
        self._edges.path.append(NONE)

    def _join(self, ends: Sequence[_End], reason: int) -> _End:
        """Return the one segment that follows all of some, and when it ends."""
        if len(ends) == 1:
            return ends[0]
        last = max(ends, key=attrgetter("time_ns"))
        row = self._network.execution[last.segment]
        made = self._network.add(row, last.time_ns, last.time_ns, NONE)
        for each in ends:
            self._edge(made, each.segment, reason)
        return _End(made, last.time_ns, max(each.start_ns for each in ends))

    def _end(self, job: int, start_ns: int) -> _End:
        return _End(self._jobs[job][1], self._processes.end_ns[job], start_ns)

    def _is_before(self, end: _End, job: int) -> bool:
        """Whether something ended before a job began; make may see the end before the trace."""
        begin_ns = self._processes.start_ns[job]
        return end.start_ns < begin_ns and end.time_ns <= begin_ns + SLACK_NS

    def _number(self, row: int) -> int:
        return self._processes.of_row[row]

    def _lines(self, rows: Iterable[int]) -> list[int]:
        """Return the jobs of a recipe, without those that did not wait for the one before."""
        found, start_ns = list[int](), self._processes.start_ns
        for job in map(self._number, rows):
            if job not in self._jobs:
                continue
            if not found or self._is_before(self._end(found[-1], start_ns[found[-1]]), job):
                found.append(job)
        return found

    def _follow_rules(self) -> None:
        ends: list[_End | None] = []
        for rows, waits in zip(self._order.lines, self._order.waits, strict=True):
            lines = self._lines(rows)
            before = [end for node in waits if (end := ends[node]) is not None]
            if not lines:
                ends.append(self._join(before, NEEDED) if before else None)
                continue
            first, last = lines[0], lines[-1]
            for end in before:
                if self._is_before(end, first):
                    self._edge(self._jobs[first][0], end.segment, NEEDED)
                else:
                    self._order.strays.add(self._processes.first[first])
            for a, b in pairwise(lines):
                self._edge(self._jobs[b][0], self._jobs[a][1], NEXT_LINE)
            self._network.later_lines.update(lines[1:])
            self._network.last_line[first] = last
            ends.append(self._end(last, self._processes.start_ns[last]))

    def _follow_functions(self) -> None:
        """Let jobs wait for what make ran itself before them, and for the make before it."""
        of = self._processes
        self._network.functions.update(map(self._number, self._order.functions))
        for number, is_scheduler in enumerate(of.is_scheduler):
            if is_scheduler:
                own = of.child[of.child_start[number] : of.child_start[number + 1]]
                self._follow_own([child for child in own if child in self._jobs])

    def _follow_own(self, children: Sequence[int]) -> None:
        parent, of = self._processes.image["executions"]["parent"], self._processes
        last_row, has_jobs = NONE, False
        ended = list[_End]()
        # the jobs of the make that this one executed again, $(shell) of makefiles, of a recipe
        restarted: _End | None = None
        reading: _End | None = None
        expanding: _End | None = None
        for child in children:
            if parent[of.first[child]] != last_row:
                restarted = self._join(ended, OF_FUNCTION) if ended else None
                last_row, has_jobs, ended = parent[of.first[child]], False, []
                reading = expanding = None
            for before in (restarted, reading, expanding):
                if before is not None and self._is_before(before, child):
                    self._edge(self._jobs[child][0], before.segment, OF_FUNCTION)
            expanding = None
            ended.append(self._end(child, of.start_ns[child]))
            if child not in self._network.functions:
                has_jobs = True
            elif has_jobs:
                expanding = ended[-1]
            else:
                reading = ended[-1]


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
