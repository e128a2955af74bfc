# SPDX-License-Identifier: Apache-2.0
"""A network and limits -> when each segment would run.

Segments begin as soon as what they follow has ended. Those that begin a job also need a slot, which
is free again when the last segment of its recipe has ended; those that compute need a processor
until they end. Of several that could have it, the one that began first in the traced build gets it.
Of jobs, make takes the next one in its list after the one that it took last (update_goal_chain in
remake.c of GNU make 4.4), and ninja the first one (ready_ in build.cc of ninja 1.11 and 1.12).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from libetrace.image.file import Image
from libetrace.timing.schedule import find_slacks, run_network

from etrace.errors import EtraceError
from etrace.spec.database import NONE
from etrace.timing.network import Network


def cpu_times(image: Image) -> list[int] | None:
    """Return user and system time of each execution in ns, NONE where unknown; None without any."""
    if "usage" not in image.tables:
        return None
    usage = image["usage"]
    times = zip(usage["user_ns"], usage["system_ns"], strict=True)
    return [NONE if NONE in pair else sum(pair) for pair in times]


#: a process whose CPU time is this part of its own time or more did not sleep
COMPUTES = 0.5
#: a machine that is busy with other work leaves a process that computes more than this
STARVED = 0.02


def awake_parts(image: Image) -> list[float]:
    """Return for each execution the part of its own time below which its CPU time shows sleep.

    That depends on whether it gave its CPU up more often than it was taken off it, or at all.
    """
    if "usage" not in image.tables:
        return [0.0] * image["executions"].n_rows
    usage = image["usage"]
    switches = zip(usage["n_voluntary_switches"], usage["n_forced_switches"], strict=True)
    return [
        COMPUTES if voluntary > forced else STARVED if voluntary > 0 else 0.0
        for voluntary, forced in switches
    ]


def never_slept(image: Image) -> list[bool]:
    """Return for each execution whether it was taken off its CPU and never gave it up."""
    if "usage" not in image.tables:
        return [False] * image["executions"].n_rows
    usage = image["usage"]
    switches = zip(usage["n_voluntary_switches"], usage["n_forced_switches"], strict=True)
    return [voluntary == 0 < forced for voluntary, forced in switches]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Begin and end of each segment in ns; `order` is that of their ends.

    `waited_for[i]` is the segment whose end let i begin, NONE for none.
    """

    begin: array[float]
    end: array[float]
    order: array[int]
    waited_for: array[int]

    @property
    def elapsed_ns(self) -> int:
        """How long everything takes."""
        return round(max(self.end, default=0))


@dataclass(frozen=True, slots=True)
class Limits:
    """What segments wait for besides each other.

    `slots` is how many jobs run at once in each pool. Each of `walkers` (its pool, and whether it
    goes through its list as make does) starts the jobs that `walker` has for it, by process, which
    `place` orders. `computes` says for each segment whether it needs one of `n_processors`; None:
    there are enough.
    """

    slots: Sequence[int] = ()
    walkers: Sequence[tuple[int, bool]] = ()
    walker: Mapping[int, int] = field(default_factory=dict)
    place: Mapping[int, float] = field(default_factory=dict)
    n_processors: int | None = None
    computes: Sequence[bool] = ()


def schedule(
    network: Network, work: Sequence[float] | None = None, limits: Limits | None = None
) -> Schedule:
    """Run a network; `work` is the time that each segment takes, by default that of the trace.

    Without `limits` segments wait for each other alone. EtraceError when some do so forever.
    """
    limits, n = limits or Limits(), len(network)
    walker, frees = array("i", [NONE]) * n, array("i", [NONE]) * n
    place = array("d", [0.0]) * n
    for segment, job in enumerate(network.job if limits.walker else ()):
        if job == NONE or job in network.later_lines or job not in limits.walker:
            continue
        walker[segment], place[segment] = limits.walker[job], limits.place[job]
        frees[network.last_of_job[network.last_line.get(job, job)]] = limits.walker[job]
    taken = array("d", network.work_ns if work is None else work)
    found = Schedule(*run_network(
        network.start, network.other, taken, network.begin_ns, walker, place, frees,
        bytes(limits.computes or n), array("i", [pool for pool, _ in limits.walkers]),
        bytes(is_make for _, is_make in limits.walkers), limits.slots, limits.n_processors,
    ))  # fmt: skip
    if len(found.order) != n:
        raise EtraceError(
            "the database is damaged: processes wait for each other", "make it again: cas parse"
        )
    return found


def slacks(network: Network, found: Schedule, work: Sequence[float]) -> array[float]:
    """Return how much later each segment could end without a later end of all; ns."""
    return find_slacks(network.start, network.other, found.order, found.end, array("d", work))
