# SPDX-License-Identifier: Apache-2.0
"""A network and a number of jobs -> when each segment would run.

Segments begin as soon as what they follow has ended. Those that begin a leaf job also need one of
`n_jobs` slots, which is free again when the job's last segment has ended. Of several jobs that
could begin, the one that began first in the traced build gets it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from etrace.errors import EtraceError
from etrace.spec.database import NONE
from etrace.timing.network import Network


@dataclass(frozen=True, slots=True)
class Schedule:
    """Begin and end of each segment in ns; `order` is that of their ends.

    `waited_for[i]` is the segment whose end let i begin, NONE for none.
    """

    begin: list[float]
    end: list[float]
    order: list[int]
    waited_for: list[int]

    @property
    def elapsed_ns(self) -> int:
        """How long everything takes."""
        return round(max(self.end, default=0))


class _Run:
    """A simulation: a heap of ends, and the jobs that wait for a slot."""

    def __init__(self, network: Network, work: Sequence[float], n_jobs: int | None) -> None:
        n = len(network)
        self.network, self.work, self.n_free = network, work, n_jobs
        self.begin, self.end, self.order = [0.0] * n, [0.0] * n, list[int]()
        self.waited_for = [NONE] * n
        self.after: list[list[int]] = [[] for _ in range(n)]
        self.n_missing = [0] * n
        for segment, before in enumerate(network.before):
            self.n_missing[segment] = len(before)
            for other, _, _ in before:
                self.after[other].append(segment)
        self.ends: list[tuple[float, int]] = []
        self.jobs: list[tuple[int, int]] = []
        self.freeing = set(network.last_of_job.values())

    def ready(self, segment: int, now: float) -> None:
        """Begin a segment, or let its job queue."""
        if self.network.job[segment] != NONE and self.n_free is not None:
            heapq.heappush(self.jobs, (self.network.begin_ns[segment], segment))
        else:
            self.start(segment, now)

    def start(self, segment: int, now: float) -> None:
        """Begin a segment now."""
        self.begin[segment] = now
        heapq.heappush(self.ends, (now + self.work[segment], segment))

    def finish(self, segment: int, now: float) -> None:
        """Let what followed a segment begin."""
        self.end[segment] = now
        self.order.append(segment)
        for other in self.after[segment]:
            self.n_missing[other] -= 1
            if not self.n_missing[other]:
                self.waited_for[other] = segment
                self.ready(other, now)
        if self.n_free is not None and segment in self.freeing:
            self.n_free += 1
        self.take_slots(segment, now)

    def take_slots(self, segment: int, now: float) -> None:
        """Begin jobs that wait, as long as there are slots."""
        while self.jobs and self.n_free:
            self.n_free -= 1
            job = heapq.heappop(self.jobs)[1]
            self.waited_for[job] = segment
            self.start(job, now)


def schedule(
    network: Network, work: Sequence[float] | None = None, n_jobs: int | None = None
) -> Schedule:
    """Run a network; `work` is the time that each segment takes, by default that of the trace.

    Without `n_jobs` nothing waits for a slot. EtraceError when segments wait for each other.
    """
    run = _Run(network, network.work_ns if work is None else work, n_jobs)
    for segment, n in enumerate(run.n_missing):
        if not n:
            run.ready(segment, 0.0)
    run.take_slots(NONE, 0.0)
    while run.ends:
        now, segment = heapq.heappop(run.ends)
        run.finish(segment, now)
    if len(run.order) != len(network):
        raise EtraceError(
            "the database is damaged: processes wait for each other", "make it again: cas parse"
        )
    return Schedule(run.begin, run.end, run.order, run.waited_for)


def slacks(network: Network, found: Schedule, work: Sequence[float]) -> list[float]:
    """Return how much later each segment could end without a later end of all; ns."""
    end = max(found.end, default=0.0)
    latest = [end] * len(network)
    for segment in reversed(found.order):
        begin = latest[segment] - work[segment]
        for other, _, _ in network.before[segment]:
            latest[other] = min(latest[other], begin)
    return [late - at for late, at in zip(latest, found.end, strict=True)]
