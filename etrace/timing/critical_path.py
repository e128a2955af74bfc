# SPDX-License-Identifier: Apache-2.0
"""A database -> the chain of executions that its end waited for, and the slack of all others.

The chain is the longest one through the network of segments when nothing waits for a free slot: no
number of processors makes the build shorter. Where the rules of a make are not known, its jobs wait
for each other by files alone, and the chain is a lower bound. The path through a program that
orders work itself (own_order.py) is the order that it chose, so another order may be shorter there.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image

from etrace.figures import count
from etrace.query.rows.labels import Labels
from etrace.query.totals import elapsed_ns
from etrace.spec.database import NONE
from etrace.timing.network import REASONS, Network, Reason, build_network, unknown_makes
from etrace.timing.own_order import OwnOrder, find_own_order
from etrace.timing.processes import Processes
from etrace.timing.recipe_order import find_recipe_order
from etrace.timing.schedule import Schedule, cpu_times, never_slept, schedule, slacks

#: what an execution was blocked by
CHILD, PIPE, JOB_SLOT = "child", "pipe", "job slot"
#: neither a CPU nor a child or a pipe to wait for: it was taken off its CPU more often than it gave
#: it up, or the trace does not show which of several it was
PROCESSORS, OTHER = "busy processors", "disk, lock or processors"
#: a path of which less is in programs that order work themselves is shown unchanged
IN_DOUBT = 0.1
N_DOUBTS = 3
BLOCKED_BY = {Reason.CHILD: CHILD, Reason.PIPE: PIPE}


@dataclass(frozen=True, slots=True)
class Blocked:
    """How long an execution did not go on in the traced build, and what it waited for; ns."""

    by: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """One execution on the path, or one of its parts; times in ns.

    `execution` is a row of `executions`. `start_ns` and `end_ns` are those of the part in the
    traced build since the trace began, `work_ns` is what it adds to the path; `elapsed_ns` and
    `cpu_ns` are those of the whole execution, `cpu_ns` None where unknown. `reason` says why it did
    not begin before the step above it had ended; `path`, a row of `paths`, is the file of
    Reason.FILE, else NONE.
    """

    execution: int
    start_ns: int
    end_ns: int
    work_ns: int
    elapsed_ns: int
    cpu_ns: int | None
    reason: Reason | None
    path: int
    blocked: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True)
class Inside:
    """A program that orders work itself, and how much of the path is in it.

    `execution` is its row; `n` is how many programs it started, or how many threads it had.
    """

    execution: int
    order: OwnOrder
    n: int
    path_ns: int


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The path, the earliest step first. `slack_ns` and `work_ns` are by execution.

    `unknown` are executions of make and its like whose jobs may wait for others by rules that are
    not known, and why; `stray_ns` is the time of jobs of other makes for which no rule was found.

    Slack is 0 on the path. Work is CPU time where that is known, else the time without waits; none
    for a reader that its writer outlived.
    `inside` are the programs on it that order work themselves, the one with most of it first.
    """

    steps: tuple[Step, ...]
    path_ns: int
    elapsed_ns: int
    slack_ns: array[int]
    work_ns: array[int]
    inside: tuple[Inside, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)
    stray_ns: int = 0

    @property
    def is_lower_bound(self) -> bool:
        """Whether jobs may have to wait for others that the path does not let them wait for."""
        return bool(self.unknown) or self.stray_ns > IN_DOUBT * self.path_ns

    @property
    def is_upper_bound(self) -> bool:
        """Whether the build may be shorter than the path, by another order inside programs."""
        return sum(each.path_ns for each in self.inside) > IN_DOUBT * self.path_ns

    @property
    def bounds(self) -> tuple[str, str]:
        """What the path's length is, and elapsed / critical path; empty when they are known."""
        if self.is_lower_bound:
            return ("about", "about") if self.is_upper_bound else ("at least", "at most")
        return ("at most", "at least") if self.is_upper_bound else ("", "")

    @property
    def executions(self) -> list[int]:
        """Rows of `executions` on the path, in its order, each once."""
        return list(dict.fromkeys(step.execution for step in self.steps))

    @property
    def speedup_limit(self) -> float:
        """Elapsed / critical path: how many times faster more jobs can make it; 1: no faster."""
        return self.elapsed_ns / self.path_ns if self.path_ns else 1.0


def find_critical_path(image: Image, network: Network | None = None) -> CriticalPath:
    """Return the critical path of a build. EtraceError for a damaged database.

    `network` is that of the image, when somebody has it already.
    """
    network = network or build_network(image, find_recipe_order(image))
    found = schedule(network)
    steps = tuple(_Steps(image, network, found).all())
    slack = _slack_of_executions(image, network, found)
    inside = tuple(_inside(image, network.processes, steps))
    work = array("q", _work_of_executions(image, network))
    return CriticalPath(
        steps, found.elapsed_ns, elapsed_ns(image), slack, work, inside, unknown_makes(network),
        _stray_ns(network),
    )  # fmt: skip


def _stray_ns(network: Network) -> int:
    processes = network.processes
    strays = network.order.strays if network.order is not None else ()
    numbers = map(processes.of_row.__getitem__, strays)
    return sum(end - begin for begin, end in processes.spans(numbers))


def doubts(image: Image, found: CriticalPath) -> Iterator[tuple[int, str]]:
    """Yield how much of the path lies where, for what makes it an upper bound; ns and words."""
    labels, by_name = Labels(image), dict[tuple[str, OwnOrder], list[Inside]]()
    for each in found.inside if found.is_upper_bound else ():
        name = labels.program(each.execution) or labels.of(each.execution)
        by_name.setdefault((name, each.order), []).append(each)
    for (name, order), parts in list(by_name.items())[:N_DOUBTS]:
        path_ns = sum(each.path_ns for each in parts)
        if order is OwnOrder.PROGRAMS:
            n = count(sum(each.n for each in parts), "process")
            where = f"below {name}, which started {n} in an order of its own"
        else:
            where = f"in {name}, which has {count(max(each.n for each in parts), 'thread')}"
        yield path_ns, f"{where}: what they wait for is not known"


def _work_of_executions(image: Image, network: Network) -> Iterator[int]:
    own, cpu = array("q", [0]) * image["executions"].n_rows, cpu_times(image)
    for row, work_ns in zip(network.execution, network.work_ns, strict=True):
        own[row] += work_ns
    for row, work_ns in enumerate(own):
        is_known = cpu is not None and cpu[row] != NONE
        waited = network.processes.of_row[row] in network.readers
        yield cpu[row] if cpu is not None and is_known else 0 if waited else work_ns


class _Outermost(dict[int, int]):
    """The outermost process at or above one that orders programs itself, NONE for none.

    Each process is walked over once.
    """

    def __init__(self, processes: Processes, orders: dict[int, OwnOrder]) -> None:
        super().__init__({NONE: NONE})
        self._parent, self._orders = processes.parent, orders

    def __missing__(self, number: int) -> int:
        passed, at = list[int](), number
        while at not in self:
            passed.append(at)
            at = self._parent[at]
        found = self[at]
        for each in reversed(passed):
            if found == NONE and self._orders.get(each) is OwnOrder.PROGRAMS:
                found = each
            self[each] = found
        return found


def _inside(image: Image, processes: Processes, steps: Sequence[Step]) -> list[Inside]:
    """Return in which programs that order work themselves the steps lie, the outermost each."""
    orders, path_ns = find_own_order(image, processes), dict[int, int]()
    outermost = _Outermost(processes, orders)
    for step in steps:
        at = processes.of_row[step.execution]
        chosen = outermost[at]
        if chosen == NONE and at in orders:
            chosen = at
        if chosen != NONE:
            path_ns[chosen] = path_ns.get(chosen, 0) + step.work_ns
    found = []
    for number, work_ns in path_ns.items():
        own, order = processes[number], orders[number]
        n = len(own.children) if order is OwnOrder.PROGRAMS else own.n_threads + 1
        found.append(Inside(own.end - 1, order, n, work_ns))
    return sorted(found, key=lambda each: (-each.path_ns, each.execution))


def _slack_of_executions(image: Image, network: Network, found: Schedule) -> array[int]:
    n_rows, most = image["executions"].n_rows, sys.maxsize
    least = array("q", [most]) * n_rows
    for row, slack in zip(network.execution, slacks(network, found, network.work_ns), strict=True):
        if slack < least[row]:
            least[row] = round(slack)
    owners = find_thread_owners(image)
    return array("q", (0 if least[row] == most else least[row] for row in owners))


def _chain(found: Schedule) -> list[int]:
    """Return the segments on the longest chain, the first one first."""
    chain: list[int] = []
    at = max(range(len(found.end)), key=found.end.__getitem__, default=NONE)
    while at != NONE:
        chain.append(at)
        at = found.waited_for[at]
    return chain[::-1]


class _Steps:
    """Joins the segments of a chain to steps: parts of one process that run one program.

    What a process did before its first exec belongs to the program that it then executed.
    """

    def __init__(self, image: Image, network: Network, found: Schedule) -> None:
        self.network, self.found, self.cpu = network, found, cpu_times(image)
        self.never_slept = never_slept(image)
        self.executions = image["executions"]
        self.chain = _chain(found)
        self.rows = set(map(self._row, self.chain))
        self.waits: dict[int, dict[Reason, int]] = {}
        for segment, place in enumerate(network.waited):
            if place == NONE or network.execution[segment] not in self.rows:
                continue
            own, reason = self.waits.setdefault(network.execution[segment], {}), REASONS[place]
            time_ns = network.end_ns[segment] - network.begin_ns[segment]
            own[reason] = own.get(reason, 0) + time_ns
        self._wait_of_schedulers()
        self.link: tuple[Reason | None, int] = (None, NONE)
        self.slot_ns = 0
        self.reported: set[int] = set()

    def _wait_of_schedulers(self) -> None:
        """Count the time of make and its like that is not their own as a wait for jobs."""
        network, work = self.network, dict.fromkeys(self.rows, 0)
        for row, work_ns in zip(network.execution, network.work_ns, strict=True):
            if row in work:
                work[row] += work_ns
        for row in self.rows:
            own = network.processes[network.processes.of_row[row]]
            if own.is_scheduler and own.children and row == own.end - 1:
                rest = self.executions["elapsed_ns"][row] - work[row]
                self.waits[row] = {Reason.CHILD: rest}

    def all(self) -> Iterator[Step]:
        """Yield the steps; parts without work are left out, and the next one has their reason."""
        part: list[int] = []
        for segment in self.chain:
            if part and self._row(part[0]) != self._row(segment):
                yield from self._step(part)
                part = []
            part.append(segment)
        yield from self._step(part)

    def _row(self, segment: int) -> int:
        row = self.network.execution[segment]
        upid, binary = self.executions["upid"], self.executions["binary"]
        has_next = row + 1 < len(upid) and upid[row + 1] == upid[row]
        return row + 1 if binary[row] == NONE and has_next else row

    def _step(self, part: list[int]) -> Iterator[Step]:
        network = self.network
        if not part:
            return
        own = self._why(part[0])
        if self.link[0] is not Reason.FILE:
            self.link = own
        row = self._row(part[0])
        busy = [segment for segment in part if network.work_ns[segment]]
        if busy:
            cpu = self.cpu[row] if self.cpu is not None else NONE
            yield Step(
                execution=row,
                start_ns=network.begin_ns[busy[0]],
                end_ns=network.end_ns[busy[-1]],
                work_ns=sum(network.work_ns[segment] for segment in busy),
                elapsed_ns=self.executions["elapsed_ns"][row],
                cpu_ns=None if cpu == NONE else cpu,
                reason=self.link[0],
                path=self.link[1],
                blocked=tuple(self._blocked(row, cpu)),
            )
            self.link, self.slot_ns = (None, NONE), 0
        self.slot_ns += sum(map(self.network.slot_wait_ns, part))  # the job is the next step

    def _why(self, segment: int) -> tuple[Reason | None, int]:
        for other, reason, path in self.network.before(segment):
            if other == self.found.waited_for[segment]:
                return reason, path
        return None, NONE

    def _blocked(self, row: int, cpu: int) -> Iterator[Blocked]:
        """Yield what it waited for: children and pipes with the first step of an execution."""
        waits = self.waits.pop(row, {})
        known = sum(waits.values())
        if self.slot_ns:
            yield Blocked(JOB_SLOT, self.slot_ns)
        yield from (Blocked(BLOCKED_BY[by], ns) for by, ns in waits.items() if ns > 0)
        rest = self.executions["elapsed_ns"][row] - known - cpu
        if cpu != NONE and row not in self.reported and rest > 0:
            yield Blocked(self._off_processor(row), rest)
        self.reported.add(row)

    def _off_processor(self, row: int) -> str:
        if self.network.processes.of_row[row] in self.network.readers:
            return PIPE
        return PROCESSORS if self.never_slept[row] else OTHER
