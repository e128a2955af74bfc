# SPDX-License-Identifier: Apache-2.0
"""Paired runs: the candidates take turns, so that a noisy neighbour hits all of them alike.

The figure is the median over the rounds of the ratio to the baseline of the same round. CPU time
is user + system of the whole process tree, the steadier of the two on a shared machine: this
process is the subreaper of what it starts (prctl(2)), so that a part in the background counts.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Run:
    """One run: seconds of wall clock and CPU, peak resident size in bytes (largest process)."""

    wall: float
    cpu: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do the work; `prepare` runs before each run and is not measured."""

    name: str
    command: Sequence[str | Path]
    cwd: Path | None = None
    prepare: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians of one candidate: seconds, bytes, and ratios to the baseline."""

    name: str
    wall: float
    cpu: float
    peak_bytes: int
    wall_ratio: float
    cpu_ratio: float


PR_SET_CHILD_SUBREAPER = 36


def _reap_all(first: int) -> tuple[int, float, int]:
    """Wait for a process and all orphans of its tree: (its status, CPU seconds, peak bytes)."""
    status, cpu, peak = 0, 0.0, 0
    while True:
        try:
            pid, raw, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return status, cpu, peak
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss * 1024)
        if pid == first:
            status = os.waitstatus_to_exitcode(raw)


def once(candidate: Candidate) -> Run:
    """Run a candidate once; CalledProcessError when it fails."""
    if candidate.prepare is not None:
        candidate.prepare()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    argv = [str(a) for a in candidate.command]
    start = time.monotonic()
    process = subprocess.Popen(
        argv, cwd=candidate.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    process.returncode, cpu, peak = _reap_all(process.pid)
    wall = time.monotonic() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, stderr=errors)
    return Run(wall, cpu, peak)


def compare(candidates: Sequence[Candidate], rounds: int) -> list[Figure]:
    """Run all candidates `rounds` times in turns; the first one is the baseline."""
    runs: Mapping[str, list[Run]] = {c.name: [] for c in candidates}
    for _ in range(rounds):
        for candidate in candidates:
            runs[candidate.name].append(once(candidate))
    base = runs[candidates[0].name]
    return [_figure(name, own, base) for name, own in runs.items()]


def _figure(name: str, own: Sequence[Run], base: Sequence[Run]) -> Figure:
    pairs = list(zip(own, base, strict=True))
    return Figure(
        name,
        statistics.median(r.wall for r in own),
        statistics.median(r.cpu for r in own),
        max(r.peak_bytes for r in own),
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(a.cpu / b.cpu for a, b in pairs),
    )


def table(title: str, figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        f"### {title}",
        "| | wall s | CPU s | wall ratio | CPU ratio | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {f.name} | {f.wall:.3f} | {f.cpu:.3f} | {f.wall_ratio:.2f} | {f.cpu_ratio:.2f}"
        f" | {f.peak_bytes / 1e6:.0f} |"
        for f in figures
    ]
    return "\n".join(lines) + "\n"
