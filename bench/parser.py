# SPDX-License-Identifier: Apache-2.0
"""What parsing costs: a Lua build's trace scaled 200 times against md5sum; growth to 3 GB."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import paired
import scale
from paired import Candidate, Figure

SAMPLE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "lua.nfsdb.xz"
CACHE = Path(__file__).resolve().parents[1] / "build" / "bench"
N_COPIES = 200
GROWTH = (2, 20, 200, 2000)
MEGA = 1e6
#: what the figures are held to
MAX_CPU_RATIO, MIN_SPEEDUP, MAX_PEAK_RATIO = 1.2, 1.6, 1.5


def scaled(n_copies: int) -> Path:
    """Return the sample scaled, made when it is not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / f"lua-{n_copies}.nfsdb"
    if not target.exists():
        pending = target.with_suffix(".tmp")
        scale.scale(SAMPLE, n_copies, pending)
        pending.rename(target)
    return target


def parse_with(trace: Path, jobs: int) -> Candidate:
    """One way to parse: every run makes its files anew."""
    output = CACHE / "out.json"

    def remove_output() -> None:
        for path in CACHE.glob("out*.json"):
            path.unlink()

    program = Path(sys.executable).parent / "etrace_parser"
    command = [str(program), "-j", str(jobs), str(trace), str(output)]
    return Candidate(f"etrace_parser -j{jobs}", command, prepare=remove_output)


def compare_with_md5sum(rounds: int) -> tuple[list[Figure], Path]:
    """Take turns: md5sum, one thread, two threads."""
    trace = scaled(N_COPIES)
    candidates = [
        Candidate("md5sum", ["md5sum", trace]),
        parse_with(trace, 1),
        parse_with(trace, 2),
    ]
    return paired.compare(candidates, rounds), trace


def speedup(rounds: int) -> float:
    """Return how much faster two threads are than one, the median of paired runs."""
    trace = scaled(N_COPIES)
    figures = paired.compare([parse_with(trace, 2), parse_with(trace, 1)], rounds)
    return figures[1].wall_ratio


def verdict(name: str, value: float, limit: float, at_most: bool) -> str:
    """Say whether a figure keeps its promise."""
    kept = value <= limit if at_most else value >= limit
    bound = f"{'at most' if at_most else 'at least'} {limit}"
    return f"{'ok  ' if kept else 'MISS'} {name}: {value:.2f} ({bound})"


def growth(copies: Sequence[int], rounds: int) -> str:
    """Return a table of throughput by size."""
    lines = [
        "### growth, one thread",
        "| MB | CPU s | CPU s / GB | peak MB | peak / size |",
        "|---|---|---|---|---|",
    ]
    for n_copies in copies:
        trace = scaled(n_copies)
        size = trace.stat().st_size
        (figure,) = paired.compare([parse_with(trace, 1)], rounds)
        lines.append(
            f"| {size / MEGA:.0f} | {figure.cpu:.3f} | {figure.cpu / size * 1e9:.2f}"
            f" | {figure.peak_bytes / MEGA:.0f} | {figure.peak_bytes / size:.2f} |"
        )
        if n_copies > N_COPIES:
            trace.unlink()
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables and what they are held to."""
    figures, trace = compare_with_md5sum(rounds=7)
    size = trace.stat().st_size
    print(paired.table(f"parser, {size / MEGA:.0f} MB trace, against md5sum", figures))
    print(verdict("CPU of one thread / md5sum", figures[1].cpu_ratio, MAX_CPU_RATIO, at_most=True))
    print(verdict("speed of two threads / one", speedup(7), MIN_SPEEDUP, at_most=False))
    peak = max(figure.peak_bytes for figure in figures[1:]) / size
    print(verdict("peak memory / file", peak, MAX_PEAK_RATIO, at_most=True))
    print()
    print(growth(GROWTH, rounds=3))


if __name__ == "__main__":
    main()
