# SPDX-License-Identifier: Apache-2.0
"""What parsing costs: a Lua build's trace scaled 200 times against md5sum; growth to 3 GB.

`cas parse` makes the image, `etrace_parser` the image and JSON.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import paired
from paired import Candidate, Figure
from samples import CACHE, CAS, MEGA, N_COPIES, PROGRAMS, compiled, repeating, scaled, verdict

GROWTH = (2, 20, 200, 2000)
#: 3 MB to 30 GB
STREAMED = (2, 20, 200, 2000, 20000)
#: (what grows, how often): traces of generate_trace that grow in one way only
ONE_WAY = (("events", 10**6), ("events", 10**7), ("files", 10**6), ("processes", 10**7))
#: what the figures are held to
MAX_IMAGE_RATIO, MAX_JSON_RATIO, MIN_SPEEDUP, MAX_PEAK_RATIO = 0.6, 1.1, 1.7, 1.5


def parse_with(trace: Path, jobs: int, *, with_json: bool = False) -> Candidate:
    """One way to parse: every run makes its files again."""
    output = CACHE / "out"
    if with_json:
        parser = str(PROGRAMS / "etrace_parser")
        name, command = (
            "etrace_parser",
            [parser, "-j", str(jobs), str(trace), f"{output}/.nfsdb.json"],
        )
    else:
        words = ["parse", "-q", "-j", str(jobs), "--db", str(output), str(trace)]
        name, command = "cas parse", [CAS, *words]
    return Candidate(f"{name} -j{jobs}", command, prepare=lambda: empty(output))


def empty(directory: Path) -> None:
    """Make a directory that has no files."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()


def compare_with_md5sum(rounds: int) -> tuple[list[Figure], Path]:
    """Take turns: md5sum, the image and JSON on one thread and on two."""
    trace = scaled(N_COPIES)
    candidates = [
        Candidate("md5sum", ["md5sum", trace]),
        parse_with(trace, 1),
        parse_with(trace, 2),
        parse_with(trace, 1, with_json=True),
        parse_with(trace, 2, with_json=True),
    ]
    return paired.compare(candidates, rounds), trace


def speedup(rounds: int) -> float:
    """Return how much faster two threads are than one, the median of paired runs."""
    trace = scaled(N_COPIES)
    figures = paired.compare([parse_with(trace, 2), parse_with(trace, 1)], rounds)
    return figures[1].wall_ratio


def stream_with(name: str, generator: str) -> Candidate:
    """Parse a trace that a command writes to a pipe; its CPU time counts too."""
    output = CACHE / "stream"
    command = f"{generator} | {CAS} parse -q --db {output} -"
    return Candidate(name, ["sh", "-c", command], prepare=lambda: empty(output))


def streamed_copies(n_copies: int) -> Candidate:
    """Parse the sample, repeated."""
    return stream_with(f"{n_copies} copies", repeating(n_copies))


def generated(what: str, n: int) -> Candidate:
    """Parse a trace of `n` processes, or of one process with `n` events."""
    return stream_with(f"{n:,} {what}", f"{compiled('generate_trace')} {what} {n}")


def streams(candidates: Iterable[Candidate]) -> str:
    """Return a table of peak memory by stream."""
    lines = [
        "### through a pipe",
        "| | CPU s, generator included | peak MB |",
        "|---|---|---|",
    ]
    for candidate in candidates:
        run = paired.once(candidate)
        lines.append(f"| {candidate.name} | {run.cpu:.1f} | {run.peak_bytes / MEGA:.0f} |")
    return "\n".join(lines) + "\n"


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
    image, text = figures[1].cpu_ratio, figures[3].cpu_ratio
    print(verdict("CPU of one thread / md5sum", image, MAX_IMAGE_RATIO, at_most=True))
    print(verdict("the same with JSON", text, MAX_JSON_RATIO, at_most=True))
    print(verdict("speed of two threads / one", speedup(7), MIN_SPEEDUP, at_most=False))
    peak = max(figure.peak_bytes for figure in figures[1:]) / size
    print(verdict("peak memory / file", peak, MAX_PEAK_RATIO, at_most=True))
    print()
    print(growth(GROWTH, rounds=3))
    print(streams(map(streamed_copies, STREAMED)))
    print(streams(itertools.starmap(generated, ONE_WAY)))


if __name__ == "__main__":
    main()
