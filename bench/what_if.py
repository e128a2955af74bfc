# SPDX-License-Identifier: Apache-2.0
"""Predictions of `etrace critical-path --what-if --jobs` against reruns of builds.

Another number of jobs on the processors of this machine, and a compiler in a wrapper that sleeps
twice as long (bench/sleeps.py has builds that only sleep). All builds are
traced, so the tracer's own cost is in all. After a build that only warms caches up, the builds take
turns, N_ROUNDS times (ETRACE_BENCH_ROUNDS); the figures are medians, and the spread is from the
least to the most in parts of the median. `the same` is the traced build by the model: how far it is
from what was measured is the model's error without any change. The figures need a quiet machine.
Names of packages of PACKAGES in ETRACE_BENCH_PACKAGES choose some.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sources
from libetrace.image.file import Image
from samples import PROGRAMS, verdict

from etrace.nfsdb.store import open_database
from etrace.timing.recipe_order import find_recipe_order
from etrace.timing.what_if import Prediction, Simulation, factors_by_row

WRAPPER = '#!/bin/sh\nsleep {seconds}\nexec gcc "$@"\n'
SLEEP = 0.1
MAX_ERROR_PERCENT = 10.0
N_ROUNDS = int(os.environ.get("ETRACE_BENCH_ROUNDS", "3"))


@dataclass(frozen=True, slots=True)
class Package:
    """What is built: a source package of Debian, in `folder` of its tree after `prepare`.

    `cc` is what the wrapper of gcc is followed by.
    """

    source: str
    prepare: str = "./configure -q"
    folder: str = "."
    goals: tuple[str, ...] = ()
    cc: str = ""


@dataclass(frozen=True, slots=True)
class Build:
    """One way to build: how many jobs, and how long the wrapper of gcc sleeps (0: none)."""

    name: str
    n_jobs: int
    sleep: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """What the trace of one build says about another."""

    known: Build
    asked: Build
    factors: Mapping[str, float]


PACKAGES = (
    Package("lua5.4", prepare=":", goals=("linux",), cc=" -std=gnu99"),
    Package("bash"),
    Package("tcl8.6", folder="unix"),
    Package("gzip"),
    Package("bc"),
)
ONE, TWO, FOUR, EIGHT = (Build(f"make -j{n}", n) for n in (1, 2, 4, 8))
SHORT, LONG = Build("wrapped, -j2", 2, SLEEP), Build("sleeping twice, -j2", 2, 2 * SLEEP)
BUILDS = (ONE, TWO, FOUR, EIGHT, SHORT, LONG)
QUESTIONS = (
    *(Question(ONE, asked, {}) for asked in (TWO, FOUR, EIGHT)),
    *(Question(TWO, asked, {}) for asked in (ONE, FOUR, EIGHT)),
    Question(SHORT, LONG, {"sleep": 2.0}),
)


class Bench:
    """A package that is configured once, and built many times from a copy at one place."""

    def __init__(self, package: Package, scratch: Path) -> None:
        self.package, self.scratch = package, scratch
        self.tree, self.ready = scratch / "tree", scratch / "ready"
        sources.fetch(package.source, scratch / "src").rename(self.tree)
        self._run(["sh", "-c", package.prepare])
        shutil.copytree(self.tree, self.ready, symlinks=True)

    def _run(self, words: Sequence[str | Path]) -> None:
        where = self.tree / self.package.folder
        subprocess.run(words, cwd=where, check=True, capture_output=True)

    def trace(self, build: Build, number: int) -> Path:
        """Build once, traced; return the directory of the database."""
        shutil.rmtree(self.tree)
        shutil.copytree(self.ready, self.tree, symlinks=True)
        database = self.scratch / f"{build.name}-{number}".replace(" ", "_")
        database.mkdir()
        words = [f"-j{build.n_jobs}", *self.package.goals]
        if build.sleep:
            words.append(f"CC={self._wrapper(build.sleep)}{self.package.cc}")
        self._run([PROGRAMS / "etrace", "run", "-q", "-o", database, "--", "make", "-s", *words])
        self._run([PROGRAMS / "cas", "parse", "-q", "--db", database, database / ".nfsdb"])
        return database

    def _wrapper(self, seconds: float) -> Path:
        wrapper = self.scratch / "gcc-wrapper"
        wrapper.write_text(WRAPPER.format(seconds=seconds))
        wrapper.chmod(0o755)
        return wrapper

    def traces(self) -> dict[Build, list[Path]]:
        """Return the databases of all builds."""
        self.trace(TWO, 0)
        found: dict[Build, list[Path]] = {build: [] for build in BUILDS}
        for number in range(1, N_ROUNDS + 1):
            for build in BUILDS:
                found[build].append(self.trace(build, number))
        return found


def elapsed(database: Path) -> float:
    """Return how long a traced build took, in seconds."""
    executions = open_database(database)["executions"]
    ends = (a + b for a, b in zip(executions["start_ns"], executions["elapsed_ns"], strict=True))
    return float(max(ends)) / 1e9


def _spread(values: Sequence[float]) -> str:
    return f"{100 * (max(values) - min(values)) / statistics.median(values):.0f} %"


def _free(found: Sequence[Prediction]) -> str:
    known = [each.predicted_free_ns for each in found if each.predicted_free_ns is not None]
    return f"{statistics.median(known) / 1e9:.2f}" if known else "-"


def _predict(image: Image, question: Question) -> Prediction:
    simulation = Simulation(image, find_recipe_order(image), len(os.sched_getaffinity(0)))
    factors = factors_by_row(image, question.factors)
    return simulation.predict(factors, question.asked.n_jobs)


def answers(traces: Mapping[Build, Sequence[Path]]) -> Iterator[tuple[str, float]]:
    """Yield a row of the table and the error in percent, for each question."""
    for question in QUESTIONS:
        known = [open_database(each) for each in traces[question.known]]
        found = [_predict(image, question) for image in known]
        predicted = [each.predicted_ns / 1e9 for each in found]
        measured = [elapsed(each) for each in traces[question.asked]]
        median = statistics.median(measured)
        error = 100 * (statistics.median(predicted) / median - 1)
        cells = (
            question.known.name,
            f"{statistics.median(map(elapsed, traces[question.known])):.2f}",
            f"{statistics.median(each.simulated_ns for each in found) / 1e9:.2f}",
            question.asked.name,
            f"{statistics.median(predicted):.2f} ({_spread(predicted)})",
            _free(found),
            f"{median:.2f} ({_spread(measured)})",
            f"{error:+.1f} %",
        )
        yield " | ".join(cells), error


def main() -> None:
    """Print predicted and measured times."""
    print(f"### predictions, medians of {N_ROUNDS}")
    print("| package | from | measured s | the same s | to | predicted s (spread) "
          "| by dependencies s | measured s (spread) | error |")  # fmt: skip
    print("|" + "---|" * 9)
    worst, chosen = 0.0, os.environ.get("ETRACE_BENCH_PACKAGES", "").split()
    for package in PACKAGES:
        if chosen and package.source not in chosen:
            continue
        with tempfile.TemporaryDirectory() as name:
            for row, error in answers(Bench(package, Path(name)).traces()):
                print(f"| {package.source} | {row} |", flush=True)
                worst = max(worst, abs(error))
    print("\n" + verdict("error in %", worst, MAX_ERROR_PERCENT, at_most=True) + "\n")
