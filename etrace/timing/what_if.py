# SPDX-License-Identifier: Apache-2.0
"""A database, other times of programs and a number of jobs -> how long the build would take.

The network of the traced build runs again (schedule.py). What a segment takes is its own time in
the traced build, without waits for children and pipes. A process that computed had to wait for a
processor for the rest of that time, so where CPU time is known it counts instead, and needs one of
the processors that the trace shows, or of those that there will be. What slept keeps its
time: it used a processor for less than half of it and gave it up more often than it was taken away,
or for hardly any of it and gave it up at all.
A part of a pipeline that reads did not sleep, it waited for the part that writes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from libetrace.image.file import Image
from libetrace.timing.network import Edges

from etrace.alike import suggestion
from etrace.errors import UsageError
from etrace.query.rows.commands import shown_executions
from etrace.query.rows.labels import Labels
from etrace.query.totals import elapsed_ns
from etrace.spec.database import NONE
from etrace.timing.dependencies import find_dependencies
from etrace.timing.jobservers import Jobservers
from etrace.timing.network import (
    USED_FILE,
    Network,
    build_network,
    follow_recipes,
    unknown_makes,
)
from etrace.timing.processes import most_at_once
from etrace.timing.recipe_order import RecipeOrder
from etrace.timing.schedule import COMPUTES, Limits, Schedule, awake_parts, cpu_times, schedule


@dataclass(frozen=True, slots=True)
class Prediction:
    """Elapsed times in ns: of the trace, of its simulation, and of a simulation of what was asked.

    `traced_ns` was measured, when up to `traced_jobs` leaf jobs ran at once on `traced_processors`;
    `simulated_ns` is the same build by the model: the difference is the model's error. `n_jobs` is
    what was asked, None for the slots that the makes had. Processors are None when there are enough
    for all. `ordered_ns` keeps the order of shells and makes; `free_ns` has only the order that
    files give to jobs, None without a job. `n_unknown` executions of `n_executions` have no CPU
    time: their elapsed time counts. `most_ns` is `ordered_ns` if jobs without a known rule keep
    their order; None when there are none. `explained_ns` is `traced_ns` as far as commands that
    computed explain it.
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
    most_ns: int | None = None
    explained_ns: int | None = None

    @property
    def change(self) -> float:
        """What part of the elapsed time can be expected: 0.5 is half of it."""
        return self.ordered_ns / self.simulated_ns if self.simulated_ns else 1.0

    @property
    def predicted_ns(self) -> int:
        """The traced time changed by as much: what the model leaves out takes its part in both."""
        return round(self._explained_ns * self.change)

    @property
    def _explained_ns(self) -> int:
        return self.traced_ns if self.explained_ns is None else self.explained_ns

    @property
    def predicted_most_ns(self) -> int | None:
        """The same of `most_ns`."""
        if self.most_ns is None or not self.simulated_ns:
            return self.most_ns
        return max(round(self._explained_ns * self.most_ns / self.simulated_ns), self.predicted_ns)

    @property
    def predicted_free_ns(self) -> int | None:
        """The same of `free_ns`."""
        if self.free_ns is None or not self.simulated_ns:
            return self.free_ns
        return round(self._explained_ns * self.free_ns / self.simulated_ns)


def predict(
    image: Image, factors: Mapping[str, float], n_jobs: int | None = None,
    order: RecipeOrder | None = None,
) -> Prediction:  # fmt: skip
    """Return how long a build takes when the times of programs are multiplied by `factors`.

    `n_jobs` is as with make -j; None is what the makes of the trace had. `order` is what is known
    of their rules. UsageError for a program that did not run, EtraceError for a damaged database.
    """
    return Simulation(image, order).predict(factors_by_row(image, factors), n_jobs)


class Simulation:
    """A build that can run again: what each segment takes, and what limits how many run at once.

    EtraceError for a damaged database.
    """

    def __init__(
        self, image: Image, order: RecipeOrder | None = None, n_processors: int | None = None
    ) -> None:
        """`order` is what is known of the rules of makes.

        Another number of jobs has `n_processors`, or one for each job when that is None.
        """
        self.image, self.order, self._of_machine = image, order or RecipeOrder(), n_processors
        self.network = build_network(image, self.order)
        self._with_jobs: dict[int | None, Schedule] = {}
        network, self.cpu = self.network, cpu_times(image)
        cpu = self.cpu
        self.jobservers = Jobservers(image, network.processes)
        is_leaf = network.processes.is_leaf_job
        self.leaf_jobs = [job for job in network.last_of_job if is_leaf(job)]
        self.n_jobs = max(most_at_once(network.processes.spans(self.leaf_jobs)), 1)
        n = len(set(image["cpus"]["cpu"]))
        self.n_processors = None if cpu is None else n or None
        part = {} if cpu is None else _parts(network, cpu, awake_parts(image))
        self._part = part
        #: of each segment
        self.computes = [row in part for row in network.execution]
        pairs = zip(network.execution, network.work_ns, strict=True)
        self.work = [work * part.get(row, 1.0) for row, work in pairs]
        #: executions of known CPU time that count with their elapsed time, because they slept
        self.slept_rows = frozenset(
            row
            for row in set(network.execution) - part.keys()
            if cpu is not None and cpu[row] != NONE
        )

    @cached_property
    def traced_ns(self) -> int:
        """How long the build took when it was traced."""
        return elapsed_ns(self.image)

    @cached_property
    def simulated_ns(self) -> int:
        """How long the same build takes by the model."""
        return self.with_jobs(None).elapsed_ns

    @cached_property
    def explained_ns(self) -> int:
        """How long it took, without what the model leaves out and no command explains.

        Commands that computed may be slower than by the model for as long as they had no processor,
        or take less than all of their time. More than that is an order that make happened to take.
        """
        own = self.elapsed_own_ns
        computed = sum(own[row] * part for row, part in self._part.items())
        stood_still = sum(own[row] * (1 - part) for row, part in self._part.items())
        excess = min(max(self.traced_ns - self.simulated_ns, -computed), stood_still)
        return round(self.simulated_ns + excess)

    @cached_property
    def own_ns(self) -> list[float]:
        """What each execution takes by the model, without waits."""
        own = [0.0] * self.image["executions"].n_rows
        for row, work in zip(self.network.execution, self.work, strict=True):
            own[row] += work
        return own

    @cached_property
    def elapsed_own_ns(self) -> list[int]:
        """What each execution took in the traced build, without waits for children and pipes."""
        own = [0] * self.image["executions"].n_rows
        for row, work in zip(self.network.execution, self.network.work_ns, strict=True):
            own[row] += work
        return own

    def ordered_ns(self, factors: Mapping[int, float], n_jobs: int | None = None) -> int:
        """Return how long it takes when times of executions (by row) are multiplied by factors."""
        if not factors:
            return self.with_jobs(n_jobs).elapsed_ns
        return schedule(self.network, self._changed(factors), self.limits(n_jobs)).elapsed_ns

    def with_jobs(self, n_jobs: int | None) -> Schedule:
        """Return the build with another number of jobs."""
        if n_jobs not in self._with_jobs:
            self._with_jobs[n_jobs] = schedule(self.network, self.work, self.limits(n_jobs))
        return self._with_jobs[n_jobs]

    def free_ns(self, n_jobs: int | None, kept: Set[int] = frozenset()) -> int | None:
        """Return how long it takes when only files and rules order its jobs; None without a job.

        Jobs of `kept`, by process, stay where they are.
        """
        return _free(self, self.work, self.with_jobs(n_jobs), n_jobs, kept)

    def predict(self, factors: Mapping[int, float], n_jobs: int | None = None) -> Prediction:
        """Return the same with all figures."""
        shown, cpu = shown_executions(self.image), self.cpu
        same, asked = self.limits(None), self.limits(n_jobs)
        changed = self._changed(factors)
        ordered = schedule(self.network, changed, asked) if factors else self.with_jobs(n_jobs)
        return Prediction(
            traced_ns=self.traced_ns,
            traced_jobs=self.n_jobs,
            traced_processors=same.n_processors,
            simulated_ns=self.simulated_ns,
            n_jobs=n_jobs,
            n_processors=asked.n_processors,
            ordered_ns=ordered.elapsed_ns,
            free_ns=_free(self, changed, ordered, n_jobs),
            n_executions=len(shown),
            n_unknown=len(shown) if cpu is None else sum(cpu[row] == NONE for row in shown),
            most_ns=self._most_ns(changed, asked),
            explained_ns=self.explained_ns,
        )

    def _most_ns(self, work: Sequence[float], limits: Limits) -> int | None:
        """Return how long it takes when what no rule orders keeps its order; None without that."""
        if not unknown_makes(self.network) and not self.order.strays:
            return None
        cautious = build_network(self.image, self.order, is_cautious=True)
        return schedule(cautious, work, limits).elapsed_ns

    def _changed(self, factors: Mapping[int, float]) -> list[float]:
        if not factors:
            return self.work
        pairs = zip(self.network.execution, self.work, strict=True)
        return [time_ns * factors.get(row, 1.0) for row, time_ns in pairs]

    def limits(self, n_jobs: int | None) -> Limits:
        """Return the slots and processors of the trace, or those for `n_jobs`."""
        sizes, n_processors = self.jobservers.sizes(n_jobs), self._processors(n_jobs)
        walkers, walker, place = self._walkers
        return Limits(sizes, walkers, walker, place, n_processors, self.computes)

    @cached_property
    def _walkers(self) -> tuple[list[tuple[int, bool]], dict[int, int], dict[int, float]]:
        """The schedulers with their slots, whose child each job is, and its place in their lists.

        What no rule is known for has the place of the job that began before it.
        """
        processes, servers = self.network.processes, self.jobservers
        place_of_row = {
            rows[0]: place
            for rows, place in zip(self.order.lines, self.order.place, strict=True) if rows
        }  # fmt: skip
        walkers, walker, place = list[tuple[int, bool]](), dict[int, int](), dict[int, float]()
        for scheduler, pool in servers.of_scheduler.items():
            walkers.append((pool, servers.is_make(scheduler)))
            children = [
                child for child in processes[scheduler].children
                if child not in self.network.functions
            ]  # fmt: skip
            has_places = any(processes.first[child] in place_of_row for child in children)
            last = 0.0
            for at, child in enumerate(children):
                last = place_of_row.get(processes.first[child], last) if has_places else at
                walker[child], place[child] = len(walkers) - 1, last
        return walkers, walker, place

    def free_limits(self, n_jobs: int | None, jobs: Sequence[int], n_joins: int) -> Limits:
        """Return the limits of a network that has `jobs` alone, a segment each, and then joins."""
        processes = self.network.processes
        places = {job: float(processes.start_ns[job]) for job in jobs}
        computes, busy = dict.fromkeys(jobs, 0.0), dict.fromkeys(jobs, 0.0)
        for row, work, of_processor in zip(
            self.network.execution, self.work, self.computes, strict=True
        ):
            job = processes.leaf_job[processes.of_row[row]]
            if job in busy:
                busy[job] += work
                computes[job] += work * of_processor
        needs = [computes[job] > COMPUTES * busy[job] for job in jobs] + [False] * n_joins
        return Limits(
            [n_jobs or self.n_jobs], [(0, False)], dict.fromkeys(jobs, 0), places,
            self._processors(n_jobs), needs,
        )  # fmt: skip

    def _processors(self, n_jobs: int | None) -> int | None:
        if self.n_processors is None or n_jobs is None:
            return self.n_processors
        return self._of_machine or max(self.n_processors, n_jobs)


def _parts(network: Network, cpu: list[int], awake: list[float]) -> dict[int, float]:
    """Return the part of its own time that each execution computed, for those that did."""
    own: dict[int, int] = {}
    for row, work in zip(network.execution, network.work_ns, strict=True):
        own[row] = own.get(row, 0) + work
    of_row, readers = network.processes.of_row, network.readers

    def slept(row: int) -> bool:
        return cpu[row] < awake[row] * own[row] and of_row[row] not in readers

    return {
        row: min(cpu[row] / time_ns, 1.0)
        for row, time_ns in own.items()
        if time_ns and cpu[row] != NONE and not slept(row)
    }


def factors_by_row(image: Image, factors: Mapping[str, float]) -> dict[int, float]:
    """Return the factors of programs (by name) for their executions, by row."""
    if not factors:
        return {}
    labels, factor_of = Labels(image), dict[int, float]()
    known: set[str] = set()
    for row, binary in enumerate(image["executions"]["binary"]):
        name = labels.program(row) if binary != NONE else ""
        known.add(name)
        if name in factors:
            factor_of[row] = factors[name]
    for name in factors:
        if name not in known:
            raise UsageError(
                f"no execution of {name!r} in the database", suggestion(name, sorted(known - {""}))
            )
    return factor_of


def _free(
    model: Simulation, changed: list[float], ordered: Schedule, n_jobs: int | None,
    kept: Set[int] = frozenset(),
) -> int | None:  # fmt: skip
    """Return how long it takes when files and rules alone order the leaf jobs; None without a job.

    What the build does before its first job and after its last one is added, and what else it does
    while no job runs, but for the work of makes: that of several may go on at once.
    """
    network = model.network
    jobs = [job for job in model.leaf_jobs if job not in kept]
    if not jobs:
        return None
    begin_of = {job: segment for segment, job in enumerate(network.job) if job != NONE}
    unlimited = schedule(network, changed)
    free, segment_of, work = Network(network.processes), dict[int, int](), array("d")
    for job in jobs:
        first, last = begin_of[job], network.last_of_job[job]
        begin, end = network.begin_ns[first], network.end_ns[last]
        segment_of[job] = free.add(network.execution[first], begin, end, job)
        free.last_of_job[job] = segment_of[job]
        work.append(unlimited.end[last] - unlimited.begin[first])
    processes = network.processes
    order = find_dependencies(model.image, processes, job_of=processes.leaf_job)
    after, before = (array("i", map(segment_of.__getitem__, each)) for each in order[1::-1])
    edges = Edges(after, before, array("b", [USED_FILE]) * len(after), order.path)
    follow_recipes(free, edges, model.order, {job: (at, at) for job, at in segment_of.items()})
    free.join(edges)
    n_joins = len(free) - len(jobs)
    work.extend([0.0] * n_joins)
    opens = min(ordered.begin[begin_of[job]] for job in jobs)
    closes = max(ordered.end[network.last_of_job[job]] for job in jobs)
    spans = [(ordered.begin[begin_of[job]], ordered.end[network.last_of_job[job]]) for job in jobs]
    between = _outside(spans, _spans_of_others(network, ordered, set(jobs)))
    around = ordered.elapsed_ns - round(closes - opens - between)
    return around + schedule(free, work, model.free_limits(n_jobs, jobs, n_joins)).elapsed_ns


def _spans_of_others(
    network: Network, ordered: Schedule, jobs: Set[int]
) -> Iterator[tuple[float, float]]:
    """Yield when processes worked that are neither in one of the jobs nor schedulers."""
    processes = network.processes
    for segment, row in enumerate(network.execution):
        number = processes.of_row[row]
        is_other = processes.leaf_job[number] not in jobs and not processes.is_scheduler[number]
        if network.job[segment] == NONE and is_other:
            yield ordered.begin[segment], ordered.end[segment]


def _outside(spans: Iterable[tuple[float, float]], others: Iterable[tuple[float, float]]) -> float:
    """Return for how long there were `others`, and none of `spans`, between the first and last."""
    times = [(time, kind, by) for kind, some in enumerate((spans, others)) for span in some
             for time, by in ((span[0], 1), (span[1], -1))]  # fmt: skip
    n, begun, found = [0, 0], 0.0, 0.0
    last = max((time for time, kind, _ in times if not kind), default=0.0)
    is_open, is_inside = False, False
    for time, kind, by in sorted(times):
        if is_open:
            found += min(time, last) - begun
        n[kind] += by
        is_inside = time < last and (is_inside or not kind)
        is_open, begun = is_inside and not n[0] and bool(n[1]), time
    return found
