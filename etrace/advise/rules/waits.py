# SPDX-License-Identifier: Apache-2.0
"""Processes that gave their processor up and waited for something that is not a child or a pipe.

That is a disk, memory that was swapped out, a lock or the network. The trace has CPU times and
switches by process (Usage), so it shows that a process waited, and not for what. What started
others, as a shell does, mostly waited for these, and does not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build
from etrace.advise.finding import Finding, Sure
from etrace.advise.rules.downloads import is_download
from etrace.advise.rules.sleeps import SLEEPERS
from etrace.figures import count, seconds

IDS = ("waits",)
#: of the elapsed time, by one command: on a busy machine all wait a little
LEAST = 0.01


def find(build: Build) -> Iterator[Finding]:
    """Let what waited take its CPU time alone."""
    simulation, cpu = build.simulation, build.simulation.cpu
    if cpu is None:
        return
    processes = simulation.network.processes
    rows = {
        row: simulation.own_ns[row] - cpu[row]
        for row in simulation.slept_rows
        if simulation.own_ns[row] - cpu[row] >= LEAST * simulation.traced_ns
        and not processes[processes.of_row[row]].children
        and build.program(row) not in SLEEPERS
        and not is_download(build, row)
        and not build.is_probe(row)
    }
    factors = {row: 1 - time_ns / simulation.own_ns[row] for row, time_ns in rows.items()}
    gain = build.gain(factors, is_bound=True)
    if gain is None:
        return
    times = {row: round(time_ns) for row, time_ns in rows.items()}
    yield Finding(
        IDS[0],
        f"{count(len(times), 'command')} waited without a processor:"
        f" {seconds(sum(times.values()))}",
        "They computed for less than half of their time, and gave the processor up by themselves.",
        "Look at vmstat while the build runs. Swap (si, so): fewer jobs, or more memory. Disk (wa):"
        " a build directory in memory or on a faster disk, no fsync (eatmydata). Neither: a lock"
        " or a server that they ask.",
        Sure.POSSIBLE,
        "the trace shows that they waited, not for what",
        gain,
        build.commands(times),
        len(times),
    )
