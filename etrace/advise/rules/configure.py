# SPDX-License-Identifier: Apache-2.0
"""Runs of configure that try what an earlier run has found out.

What a probe is etrace/query/phases.py says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds

IDS = ("configure-probes",)
#: of each run: does the compiler work, what does it write, does that run here. They are not cached.
N_NOT_CACHED = 4


def find(build: Build) -> Iterator[Finding]:
    """Take the probes out of all runs of configure."""
    spared = _Spared(build)
    gain = build.gain(spared.factors(), when="the next build from scratch")
    if gain is None:
        return
    elapsed = build.executions["elapsed_ns"]
    runs = {run: elapsed[run] for run in spared.runs()}
    n_compiled = sum(build.tool_kind(row) == "compiler" for row in spared.rows)
    yield Finding(
        IDS[0],
        f"{count(len(runs), 'configure run')} of {seconds(sum(runs.values()))}",
        f"Their probes started compilers {n_compiled:,} times. A build from scratch asks all of it"
        " again, on the same machine with the same answers.",
        "Keep the answers: ./configure --cache-file=FILE, or CONFIG_SITE=SITE with the line"
        " cache_file=FILE in SITE for all packages; remove FILE when compiler or flags change.",
        Sure.LIKELY,
        "an answer without a cache variable is asked again",
        gain,
        build.commands(runs),
        len(runs),
    )


class _Spared:
    """Probes that a cache of answers spares: all of a configure script but the first ones."""

    def __init__(self, build: Build) -> None:
        self._build, phases = build, build.phases
        owners, steps = phases.commands.owners, set[int]()
        #: run -> the part of its time that it works for probes: a shell works for each step
        self.shares: dict[int, float] = {}
        for root in phases.kinds:
            parts = phases.probes(root)
            probes = [part for part in parts if part.is_probe][N_NOT_CACHED:]
            tried = [step for probe in probes for step in probe.tried]
            if tried:
                self.shares[root] = len(tried) / sum(len(part.steps) for part in parts)
            steps.update(chain.from_iterable(phases.below(root, step) for step in tried))
        #: executions of the probes
        self.rows = [row for row, number in enumerate(owners) if number in steps]

    def runs(self) -> list[int]:
        """Return the executions of the configure scripts."""
        return [self._build.phases.commands.rows[root] for root in self.shares]

    def factors(self) -> dict[int, float]:
        """Return factors of a build without these probes."""
        own = zip(self.runs(), self.shares.values(), strict=True)
        return none_of(self.rows) | {run: 1 - share for run, share in own}
