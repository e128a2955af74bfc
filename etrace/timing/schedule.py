# SPDX-License-Identifier: Apache-2.0
"""A network and limits -> when each segment would run.

Segments begin as soon as what they follow has ended. Those that begin a job also need a slot, which
is free again when the job's last segment has ended; those that compute need a processor until they
end. Of several that could have it, the one that began first in the traced build gets it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Limits:
    """What segments wait for besides each other.

    `slots` is how many jobs of each kind run at once, `kind` that of a job by its process; other
    jobs need no slot. `computes` tells of each segment whether it needs one of `n_processors`;
    None: there are enough.
    """

    slots: Sequence[int] = ()
    kind: Mapping[int, int] = field(default_factory=dict)
    n_processors: int | None = None
    computes: Sequence[bool] = ()


class _Places:
    """Some places that are free, and the segments that wait for one."""

    def __init__(self, n_free: int) -> None:
        self.n_free = n_free
        self.waiting: list[tuple[int, int]] = []

    def taken(self) -> Iterator[int]:
        """Yield those that get a place."""
        while self.waiting and self.n_free > 0:
            self.n_free -= 1
            yield heapq.heappop(self.waiting)[1]


class _Run:
    """A simulation: a heap of ends, and what waits for a slot or a processor."""

    def __init__(self, network: Network, work: Sequence[float], limits: Limits) -> None:
        n = len(network)
        self.network, self.work, self.limits = network, work, limits
        self.begin, self.end, self.order = [0.0] * n, [0.0] * n, list[int]()
        self.waited_for = [NONE] * n
        self.after: list[list[int]] = [[] for _ in range(n)]
        self.n_missing = [0] * n
        for segment, before in enumerate(network.before):
            self.n_missing[segment] = len(before)
            for other, _, _ in before:
                self.after[other].append(segment)
        self.ends: list[tuple[float, int]] = []
        self.slots = [_Places(size) for size in limits.slots]
        self.changed = set[int]()  # slots that may be taken
        last = network.last_of_job
        self.frees = {last[job]: kind for job, kind in limits.kind.items() if job in last}
        self.processors = _Places(limits.n_processors or 0)

    def ready(self, segment: int, now: float) -> None:
        """Begin a segment, or let its job queue."""
        kind = self.limits.kind.get(self.network.job[segment])
        if kind is None:
            self.start(segment, now)
        else:
            heapq.heappush(self.slots[kind].waiting, (self.network.begin_ns[segment], segment))
            self.changed.add(kind)

    def start(self, segment: int, now: float) -> None:
        """Begin a segment that has its slot, or let it queue for a processor."""
        if self._needs_processor(segment):
            heapq.heappush(self.processors.waiting, (self.network.begin_ns[segment], segment))
        else:
            self.run(segment, now)

    def _needs_processor(self, segment: int) -> bool:
        if self.limits.n_processors is None or not self.work[segment]:
            return False
        return self.limits.computes[segment]

    def run(self, segment: int, now: float) -> None:
        """Let a segment work."""
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
        if (kind := self.frees.get(segment)) is not None:
            self.slots[kind].n_free += 1
            self.changed.add(kind)
        if self._needs_processor(segment):
            self.processors.n_free += 1
        self.take_places(segment, now)

    def take_places(self, segment: int, now: float) -> None:
        """Begin what waits, as long as there are slots and processors."""
        for kind in sorted(self.changed):
            for job in self.slots[kind].taken():
                self.waited_for[job] = segment
                self.start(job, now)
        self.changed.clear()
        for other in self.processors.taken():
            self.run(other, now)


def schedule(
    network: Network, work: Sequence[float] | None = None, limits: Limits | None = None
) -> Schedule:
    """Run a network; `work` is the time that each segment takes, by default that of the trace.

    Without `limits` segments wait for each other alone. EtraceError when some do so for ever.
    """
    run = _Run(network, network.work_ns if work is None else work, limits or Limits())
    for segment, n in enumerate(run.n_missing):
        if not n:
            run.ready(segment, 0.0)
    run.take_places(NONE, 0.0)
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
