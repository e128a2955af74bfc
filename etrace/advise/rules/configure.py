# SPDX-License-Identifier: Apache-2.0
"""Runs of configure that try what an earlier run has found out.

A probe is what configure starts that names or writes a `conftest` file: the source, its compiler,
the program that comes of it. With a cache of results autoconf does none of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds
from etrace.spec.database import NONE

IDS = ("configure-probes",)
CONFTEST = b"conftest"
#: of each run: does the compiler work, what does it write, does that run here. They are not cached.
N_NOT_CACHED = 4


def find(build: Build) -> Iterator[Finding]:
    """Take the probes out of all runs of configure."""
    steps = _Steps(build)
    gain = build.gain(steps.factors(), when="the next build from scratch")
    if gain is None:
        return
    elapsed = build.executions["elapsed_ns"]
    runs = {run: elapsed[run] for run in steps.runs()}
    n_compiled = sum(build.tool_kind(row) == "compiler" for row in steps.of_probes())
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


class _Steps:
    """What runs of configure started: `step` is the first execution of a child of the run."""

    def __init__(self, build: Build) -> None:
        self._step = [NONE] * build.executions.n_rows
        self._run = run = [NONE] * build.executions.n_rows
        self._is_probe: dict[int, bool] = {}
        for row in build.by_time:
            above = build.above[row]
            if build.is_configure(row):
                run[row] = row
            elif above != NONE and run[above] != NONE:
                run[row] = run[above]
                self._step[row] = row if self._step[above] == NONE else self._step[above]
                self._look(build, row)
        self._skip()

    def _look(self, build: Build, row: int) -> None:
        step = self._step[row]
        if not self._is_probe.get(step):
            self._is_probe[step] = _names_conftest(build, row)

    def _skip(self) -> None:
        """Keep the first probes of each run, which no cache spares."""
        run, n_kept = self._run, dict[int, int]()
        for step, is_probe in self._is_probe.items():
            if is_probe and n_kept.setdefault(run[step], 0) < N_NOT_CACHED:
                n_kept[run[step]] += 1
                self._is_probe[step] = False

    def runs(self) -> set[int]:
        """Return the runs that have probes."""
        return {self._run[step] for step, is_probe in self._is_probe.items() if is_probe}

    def factors(self) -> dict[int, float]:
        """Return factors without probes: a shell works for each of its steps."""
        n_steps = Counter(self._run[step] for step in self._is_probe)
        n_probes = Counter(self._run[step] for step, is_probe in self._is_probe.items() if is_probe)
        own = {run: 1 - n / n_steps[run] for run, n in n_probes.items()}
        return none_of(self.of_probes()) | own

    def of_probes(self) -> list[int]:
        """Return the executions of probes."""
        return [row for row, step in enumerate(self._step) if self._is_probe.get(step)]


def _names_conftest(build: Build, row: int) -> bool:
    """Return whether an execution has conftest in its command line or opens such a file."""
    image = build.image
    if build.executions["binary"][row] != NONE and any(
        CONFTEST in word for word in build.labels.arguments(row)
    ):
        return True
    paths = image["opens"]["path"]
    return any(
        CONFTEST in image.path_string(paths[at]).rpartition(b"/")[2]
        for at in build.executions.span("opens.start", row)
    )
