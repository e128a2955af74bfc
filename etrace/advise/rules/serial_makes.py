# SPDX-License-Identifier: Apache-2.0
"""Makes that run one after the other, though the files of their jobs do not ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build
from etrace.advise.finding import Finding, Sure
from etrace.figures import count
from etrace.spec.database import NONE

IDS = ("serial-makes",)


def find(build: Build) -> Iterator[Finding]:
    """Run the jobs of all makes in the order of their files alone."""
    simulation = build.simulation
    processes, executions = simulation.network.processes, build.executions
    makes = {
        own.end - 1: executions["elapsed_ns"][own.end - 1]
        for own in processes
        if own.is_scheduler and own.children and own.parent != NONE
        and not build.is_probe(own.end - 1)
    }  # fmt: skip
    probes = {job for job in simulation.leaf_jobs if build.is_probe(processes[job].end - 1)}
    n = max(simulation.n_jobs, build.n_processors)
    if n < 2 or len(makes) < 2:
        return
    free_ns = simulation.free_ns(n, probes)
    if free_ns is None:
        return
    when = "" if n == simulation.n_jobs else f"a build with -j{n}"
    gain = build.gain_of(simulation.ordered_ns({}, n), free_ns, when=when)
    if gain is None:
        return
    yield Finding(
        IDS[0],
        f"{count(len(makes), 'make')} in an order that their files do not ask for",
        "A recipe or a script starts them one after the other, so the last jobs of each run alone"
        " while processors are idle.",
        "Make each directory a target of its own, so that make runs several at once:"
        " `$(SUBDIRS): ; $(MAKE) -C $@`, with what one needs from another as a prerequisite; or"
        " include the Makefiles of the directories in one.",
        Sure.POSSIBLE,
        "only files that the trace shows, and rules of one make, order the jobs",
        gain,
        build.commands(makes),
        len(makes),
    )
