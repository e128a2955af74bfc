# SPDX-License-Identifier: Apache-2.0
"""No or too few jobs against the processors that the build ran on.

Where make or its like runs the jobs, the simulation knows their order. A script that compiles one
source after the other is taken to compile some at once: compilations seldom need each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build, Compilation
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds
from etrace.spec.database import NONE
from etrace.timing.processes import Process, Processes, most_at_once

IDS = ("too-few-jobs", "one-after-the-other")
#: compilations of one script that are worth it
LEAST = 4


def find(build: Build) -> Iterator[Finding]:
    """Find both."""
    yield from _too_few(build)
    yield from _one_by_one(build)


def _too_few(build: Build) -> Iterator[Finding]:
    """Run the build with a job for each processor that the trace shows."""
    simulation = build.simulation
    processes = simulation.network.processes
    n = build.n_processors
    jobs = [job for job in simulation.leaf_jobs if not build.is_probe(processes[job].end - 1)]
    if n <= simulation.n_jobs or len(jobs) <= simulation.n_jobs:
        return
    gain = build.gain({}, n)
    if gain is None:
        return
    network = simulation.network
    makes = {
        own.end - 1: own.end_ns - own.start_ns
        for own in _outermost(processes) if not build.is_probe(own.end - 1)
    }  # fmt: skip
    waited = sum(map(network.slot_wait_ns, range(len(network))))
    yield Finding(
        IDS[0],
        f"{count(simulation.n_jobs, 'job')} at once on {count(n, 'processor')}",
        f"{count(len(jobs), 'job')} waited {seconds(waited)}, added up, for a free slot of make or"
        " ninja, while the files that they needed were there.",
        f"Run make -j{n}, or `export MAKEFLAGS=-j{n}`; with ninja leave out -j.",
        Sure.LIKELY,
        "the files of the trace allow this order; a Makefile that lacks a prerequisite may fail",
        gain,
        build.commands(makes),
        len(makes),
    )


def _outermost(processes: Processes) -> Iterator[Process]:
    """Yield the makes and their like that no other one started."""
    is_below = [False] * len(processes)
    for number in sorted(range(len(processes)), key=lambda n: processes[n].depth):
        own = processes[number]
        if own.parent != NONE:
            is_below[number] = is_below[own.parent] or processes[own.parent].is_scheduler
        if own.is_scheduler and own.children and not is_below[number]:
            yield own


def _one_by_one(build: Build) -> Iterator[Finding]:
    """Let compilations of scripts other than makes take less: one for each processor at once."""
    processes = build.simulation.network.processes
    started: dict[int, list[Compilation]] = {}
    for each in build.compilations:
        number = processes.of_row[each.execution]
        parent = processes[number].parent
        if parent != NONE and not processes[parent].is_scheduler:
            started.setdefault(parent, []).append(each)
    factors, times = dict[int, float](), dict[int, int]()
    n = build.n_processors
    for parent, compiled in started.items():
        numbers = [processes.of_row[each.execution] for each in compiled]
        if len(compiled) >= LEAST and most_at_once(processes.spans(numbers)) == 1:
            rows = [row for each in compiled for row in each.executions]
            factors |= dict.fromkeys(rows, 1 / min(n, len(compiled)))
            times[processes[parent].end - 1] = build.own_ns(rows)
    gain = build.gain(factors) if n > 1 else None
    if gain is None:
        return
    yield Finding(
        IDS[1],
        f"compilations one after the other: {seconds(sum(times.values()))}",
        f"{count(len(times), 'script')} started {count(len(factors), 'command')} of compilers, each"
        " when the one before had ended.",
        "Let make or ninja run them, or the script start some at once (xargs -P, wait); setuptools:"
        " build_ext --parallel for several extensions.",
        Sure.POSSIBLE,
        "the compilations are taken not to need each other",
        gain,
        build.commands(times),
        len(times),
    )
