# SPDX-License-Identifier: Apache-2.0
"""A database, other times of programs and a number of jobs -> how long the build would take.

The network of the traced build runs again (schedule.py). What a segment takes is its own time in
the traced build, without waits for children and pipes. A process that computed had to wait for a
processor for the rest of that time, so where CPU time is known it counts instead, and needs one of
the processors that the trace shows, or of as many as there are to be jobs. What slept keeps its
time: it used a processor for less than half of it and gave it up more often than it was taken away.
A part of a pipeline that reads did not sleep, it waited for the part that writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.alike import suggestion
from etrace.errors import UsageError
from etrace.query.classes.labels import Labels
from etrace.query.classes.shown_executions import shown_executions
from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.jobservers import Jobservers
from etrace.timing.network import Network, Reason, build_network
from etrace.timing.processes import most_at_once
from etrace.timing.schedule import Limits, Schedule, schedule
from etrace.timing.usage import cpu_times, sleepers

#: a process whose CPU time is this part of its own time or more did not sleep
COMPUTES = 0.5


@dataclass(frozen=True, slots=True)
class Prediction:
    """Elapsed times in ns: of the trace, of its simulation, and of a simulation of what was asked.

    `traced_ns` was measured, when up to `traced_jobs` leaf jobs ran at once on `traced_processors`;
    `simulated_ns` is the same build by the model: the difference is the model's error. `n_jobs` is
    what was asked, None for the slots that the makes had. Processors are None when there are enough
    for all. `ordered_ns` keeps the order of shells and makes; `free_ns` has only the order that
    files give to jobs, None without a job. `n_unknown` executions of `n_executions` have no CPU
    time: their elapsed time counts.
    """

    traced_ns: int
    traced_jobs: int
    traced_processors: int | None
    simulated_ns: int
    n_jobs: int | None
    n_processors: int | None
    ordered_ns: int
    free_ns: int | None
    n_executions: int
    n_unknown: int

    @property
    def change(self) -> float:
        """What part of the elapsed time is to be expected: 0.5 is half of it."""
        return self.ordered_ns / self.simulated_ns if self.simulated_ns else 1.0

    @property
    def predicted_ns(self) -> int:
        """The traced time changed by as much: what the model leaves out takes its part in both."""
        return round(self.traced_ns * self.change)

    @property
    def predicted_free_ns(self) -> int | None:
        """The same of `free_ns`."""
        if self.free_ns is None or not self.simulated_ns:
            return self.free_ns
        return round(self.traced_ns * self.free_ns / self.simulated_ns)


def predict(image: Image, factors: Mapping[str, float], n_jobs: int | None = None) -> Prediction:
    """Return how long a build takes when the times of programs are multiplied by `factors`.

    `n_jobs` is as with make -j; None is what the makes of the trace had. UsageError for a program
    that did not run, EtraceError for a damaged database.
    """
    network = build_network(image)
    cpu = cpu_times(image)
    model = _Model(image, network, cpu)
    changed = _multiplied(image, network, model.work, factors)
    shown = shown_executions(image)
    same, asked = model.limits(None), model.limits(n_jobs)
    ordered = schedule(network, changed, asked)
    return Prediction(
        traced_ns=max(network.end_ns, default=0) - min(network.begin_ns, default=0),
        traced_jobs=model.n_jobs,
        traced_processors=same.n_processors,
        simulated_ns=schedule(network, model.work, same).elapsed_ns,
        n_jobs=n_jobs,
        n_processors=asked.n_processors,
        ordered_ns=ordered.elapsed_ns,
        free_ns=_free(image, model, changed, ordered, n_jobs),
        n_executions=len(shown),
        n_unknown=len(shown) if cpu is None else sum(cpu[row] == NONE for row in shown),
    )


class _Model:
    """What each segment of a network takes, and what limits how many run at once."""

    def __init__(self, image: Image, network: Network, cpu: list[int] | None) -> None:
        self.network = network
        self.jobservers = Jobservers(image, network.processes)
        is_leaf = network.processes.is_leaf_job
        self.leaf_jobs = [job for job in network.last_of_job if is_leaf(job)]
        self.n_jobs = max(most_at_once(network.processes.spans(self.leaf_jobs)), 1)
        n = len(set(image["cpus"]["cpu"]))
        self.n_processors = None if cpu is None else n or None
        part = {} if cpu is None else _parts(network, cpu, sleepers(image))
        #: of each segment
        self.computes = [row in part for row in network.execution]
        pairs = zip(network.execution, network.work_ns, strict=True)
        self.work = [work * part.get(row, 1.0) for row, work in pairs]

    def limits(self, n_jobs: int | None) -> Limits:
        """Return the slots and processors of the trace, or those for `n_jobs`."""
        sizes, n_processors = self.jobservers.sizes(n_jobs), self._processors(n_jobs)
        return Limits(sizes, self.jobservers.of_job, n_processors, self.computes)

    def free_limits(self, n_jobs: int | None, jobs: Sequence[int]) -> Limits:
        """Return the limits of a network that has `jobs` alone, a segment each."""
        slots = dict.fromkeys(jobs, 0)
        computes, busy = dict.fromkeys(jobs, 0.0), dict.fromkeys(jobs, 0.0)
        processes = self.network.processes
        for row, work, of_processor in zip(
            self.network.execution, self.work, self.computes, strict=True
        ):
            job = processes.leaf_job(processes.of_row[row])
            if job in busy:
                busy[job] += work
                computes[job] += work * of_processor
        needs = [computes[job] > COMPUTES * busy[job] for job in jobs]
        return Limits([n_jobs or self.n_jobs], slots, self._processors(n_jobs), needs)

    def _processors(self, n_jobs: int | None) -> int | None:
        if self.n_processors is None or n_jobs is None:
            return self.n_processors
        return max(self.n_processors, n_jobs)


def _parts(network: Network, cpu: list[int], sleeps: list[bool]) -> dict[int, float]:
    """Return the part of its own time that each execution computed, for those that did."""
    own: dict[int, int] = {}
    for row, work in zip(network.execution, network.work_ns, strict=True):
        own[row] = own.get(row, 0) + work
    of_row, readers = network.processes.of_row, network.readers

    def slept(row: int) -> bool:
        return sleeps[row] and cpu[row] < COMPUTES * own[row] and of_row[row] not in readers

    return {
        row: min(cpu[row] / time_ns, 1.0)
        for row, time_ns in own.items()
        if time_ns and cpu[row] != NONE and not slept(row)
    }


def _multiplied(
    image: Image, network: Network, work: list[float], factors: Mapping[str, float]
) -> list[float]:
    if not factors:
        return work
    labels, factor_of = Labels(image), dict[int, float]()
    known: set[str] = set()
    for row, binary in enumerate(image["executions"]["binary"]):
        name = labels.program(row) if binary != NONE else ""
        known.add(name)
        factor_of[row] = factors.get(name, 1.0)
    for name in factors:
        if name not in known:
            raise UsageError(
                f"no execution of {name!r} in the database", suggestion(name, sorted(known - {""}))
            )
    pairs = zip(network.execution, work, strict=True)
    return [time_ns * factor_of[row] for row, time_ns in pairs]


def _free(
    image: Image, model: _Model, changed: list[float], ordered: Schedule, n_jobs: int | None
) -> int | None:
    """Return how long it takes when only files order the leaf jobs; None without a job.

    What the build does before its first job and after its last one is added.
    """
    network, jobs = model.network, model.leaf_jobs
    if not jobs:
        return None
    begin_of = {job: segment for segment, job in enumerate(network.job) if job != NONE}
    unlimited = schedule(network, changed)
    free, segment_of, work = Network(network.processes), dict[int, int](), list[float]()
    for job in jobs:
        first, last = begin_of[job], network.last_of_job[job]
        begin, end = network.begin_ns[first], network.end_ns[last]
        segment_of[job] = free.add(network.execution[first], begin, end, end - begin)
        free.job[segment_of[job]] = job
        free.last_of_job[job] = segment_of[job]
        work.append(unlimited.end[last] - unlimited.begin[first])
    for each in find_dependencies(image, network.processes, network.processes.leaf_jobs):
        edge = (segment_of[each.before], Reason.FILE, each.path)
        free.before[segment_of[each.after]].append(edge)
    opens = min(ordered.begin[begin_of[job]] for job in jobs)
    closes = max(ordered.end[network.last_of_job[job]] for job in jobs)
    around = ordered.elapsed_ns - round(closes - opens)
    return around + schedule(free, work, model.free_limits(n_jobs, jobs)).elapsed_ns
