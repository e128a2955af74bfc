# SPDX-License-Identifier: Apache-2.0
"""Predictions of `etrace critical-path --what-if --jobs` against reruns of the Lua build.

Another number of jobs, and a compiler behind a wrapper that sleeps twice as long. Both builds are
traced, so the tracer's own cost is in both. The figure needs a quiet machine with a processor for
each job.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sources
from parser import verdict

from etrace.nfsdb.store import open_database
from etrace.timing.what_if import predict

PROGRAMS = Path(sys.executable).parent
WRAPPER = '#!/bin/sh\nsleep {seconds}\nexec gcc "$@"\n'
SLEEP = 0.1
MAX_ERROR_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class Build:
    """One way to build Lua: how many jobs, and how long the wrapper of gcc sleeps (0: none)."""

    name: str
    n_jobs: int
    sleep: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """What the trace of one build says about another."""

    known: Build
    asked: Build
    factors: Mapping[str, float]


ONE, TWO = Build("make -j1", 1), Build("make -j2", 2)
SHORT, LONG = Build("wrapped, -j2", 2, SLEEP), Build("sleeping twice, -j2", 2, 2 * SLEEP)
QUESTIONS = (
    Question(ONE, TWO, {}),
    Question(TWO, ONE, {}),
    Question(SHORT, LONG, {"sleep": 2.0}),
)


def trace(build: Build, lua: Path, scratch: Path) -> Path:
    """Build Lua once, traced; returns the directory of the database."""
    tree, database = scratch / "tree", scratch / build.name.replace(" ", "_")
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(lua, tree, symlinks=True)
    database.mkdir()
    words = [f"-j{build.n_jobs}", "linux"]
    if build.sleep:
        wrapper = scratch / "gcc-wrapper"
        wrapper.write_text(WRAPPER.format(seconds=build.sleep))
        wrapper.chmod(0o755)
        words.append(f"CC={wrapper} -std=gnu99")
    run: list[str | Path] = [
        PROGRAMS / "etrace",
        "run",
        "-q",
        "-o",
        database,
        "--",
        "make",
        "-s",
        *words,
    ]
    subprocess.run(run, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([PROGRAMS / "cas", "parse", "-q", "--dbdir", database, database / ".nfsdb"],
                   check=True)  # fmt: skip
    return database


def elapsed(database: Path) -> float:
    """Return how long a traced build took, in seconds."""
    executions = open_database(database)["executions"]
    ends = (a + b for a, b in zip(executions["start_ns"], executions["elapsed_ns"], strict=True))
    return float(max(ends)) / 1e9


def main() -> None:
    """Print predicted and measured times."""
    print("### predictions for Lua")
    print("| from | to | predicted s | by dependencies s | measured s | error |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        lua = sources.fetch("lua5.4", scratch / "src")
        builds = {b.name: b for q in QUESTIONS for b in (q.known, q.asked)}.values()
        found = {build: trace(build, lua, scratch) for build in builds}
        for question in QUESTIONS:
            image = open_database(found[question.known])
            it = predict(image, question.factors, question.asked.n_jobs)
            measured = elapsed(found[question.asked])
            error = 100 * (it.ordered_ns / 1e9 / measured - 1)
            worst = max(worst, abs(error))
            free = "-" if it.free_ns is None else f"{it.free_ns / 1e9:.2f}"
            print(f"| {question.known.name} | {question.asked.name} | {it.ordered_ns / 1e9:.2f} "
                  f"| {free} | {measured:.2f} | {error:+.1f} % |")  # fmt: skip
    print("\n" + verdict("error in %", worst, MAX_ERROR_PERCENT, at_most=True) + "\n")
