# SPDX-License-Identifier: Apache-2.0
"""A database, other times of programs and a number of jobs -> how long the build would take.

The network of the traced build runs again (schedule.py). What a segment takes is its own time in
the traced build, without waits for children and pipes. A process that computed had to wait for a
processor for the rest of that time, so where CPU time is known it counts instead. What slept keeps
its time: it used a processor for less than half of it and gave it up more often than it was taken
away. There are as many processors as jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.alike import suggestion
from etrace.errors import UsageError
from etrace.query.classes.labels import Labels
from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.network import Network, Reason, build_network
from etrace.timing.processes import Processes
from etrace.timing.schedule import Schedule, schedule
from etrace.timing.usage import cpu_times, sleepers

#: a process whose CPU time is this part of its own time or more did not sleep
COMPUTES = 0.5


@dataclass(frozen=True, slots=True)
class Prediction:
    """Elapsed times in ns: of the trace, of its simulation, and of what was asked.

    `traced_ns` was measured; `simulated_ns` is the same build by the model, with `traced_jobs`
    jobs: the difference is the model's error and waits for a processor. `ordered_ns` keeps the
    order of shells and makes; `free_ns` has only the order that files give to jobs, None without a
    job. `n_unknown` executions of `n_executions` have no CPU time: their elapsed time counts.
    """

    traced_ns: int
    traced_jobs: int
    simulated_ns: int
    n_jobs: int
    ordered_ns: int
    free_ns: int | None
    n_executions: int
    n_unknown: int


def predict(image: Image, factors: Mapping[str, float], n_jobs: int | None = None) -> Prediction:
    """Return how long a build takes when the times of programs are multiplied by `factors`.

    `n_jobs` is by default that of the trace. UsageError for a program that did not run, EtraceError
    for a damaged database.
    """
    network = build_network(image)
    cpu = cpu_times(image)
    work = _own_times(network, cpu, sleepers(image))
    traced_jobs = max(count_jobs(network.processes), 1)
    n_jobs = n_jobs or traced_jobs
    changed = _multiplied(image, network, work, factors)
    n_executions, ordered = image["executions"].n_rows, schedule(network, changed, n_jobs)
    return Prediction(
        traced_ns=max(network.end_ns, default=0) - min(network.begin_ns, default=0),
        traced_jobs=traced_jobs,
        simulated_ns=schedule(network, work, traced_jobs).elapsed_ns,
        n_jobs=n_jobs,
        ordered_ns=ordered.elapsed_ns,
        free_ns=_free(image, network, changed, ordered, n_jobs),
        n_executions=n_executions,
        n_unknown=n_executions if cpu is None else cpu.count(NONE),
    )


def count_jobs(processes: Processes) -> int:
    """Return how many leaf jobs ran at once, at most."""
    changes = []
    for number in range(len(processes)):
        if processes.is_leaf_job(number):
            changes += [(processes[number].start_ns, 1), (processes[number].end_ns, -1)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def _own_times(network: Network, cpu: list[int] | None, sleeps: list[bool]) -> list[float]:
    """Return what each segment takes: CPU time of executions that compute, else elapsed time."""
    if cpu is None:
        return [float(work) for work in network.work_ns]
    own: dict[int, int] = {}
    for row, work in zip(network.execution, network.work_ns, strict=True):
        own[row] = own.get(row, 0) + work
    part = {row: _part(cpu[row], time_ns, sleeps=sleeps[row]) for row, time_ns in own.items()}
    pairs = zip(network.execution, network.work_ns, strict=True)
    return [work * part[row] for row, work in pairs]


def _part(cpu_ns: int, own_ns: int, *, sleeps: bool) -> float:
    """Return the part of an execution's own time that remains without a wait for a processor."""
    if cpu_ns == NONE or not own_ns or (sleeps and cpu_ns < COMPUTES * own_ns):
        return 1.0
    return min(cpu_ns / own_ns, 1.0)


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
    image: Image, network: Network, changed: list[float], ordered: Schedule, n_jobs: int
) -> int | None:
    """Return how long it takes when only files order the leaf jobs; None without a job.

    What the build does before its first job and after its last one is added.
    """
    unlimited = schedule(network, changed)
    free, segment_of, work = Network(network.processes), dict[int, int](), list[float]()
    for segment, job in enumerate(network.job):
        if job != NONE:
            begin, end = network.begin_ns[segment], network.end_ns[network.last_of_job[job]]
            segment_of[job] = free.add(network.execution[segment], begin, end, end - begin)
            free.job[segment_of[job]] = job
            free.last_of_job[job] = segment_of[job]
            work.append(unlimited.end[network.last_of_job[job]] - unlimited.begin[segment])
    for each in find_dependencies(image, network.processes, among_leaves=True):
        edge = (segment_of[each.before], Reason.FILE, each.path)
        free.before[segment_of[each.after]].append(edge)
    if not work:
        return None
    first = min(ordered.begin[s] for s, job in enumerate(network.job) if job != NONE)
    last = max(ordered.end[segment] for segment in network.last_of_job.values())
    around = ordered.elapsed_ns - round(last - first)
    return around + schedule(free, work, n_jobs).elapsed_ns
