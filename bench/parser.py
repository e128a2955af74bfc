# SPDX-License-Identifier: Apache-2.0
"""What parsing costs: a Lua build's trace scaled 200 times against md5sum; growth to 3 GB.

`cas parse` makes the image, `etrace_parser` the image and JSON.
"""

from __future__ import annotations

import itertools
import lzma
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import paired
import scale
from paired import Candidate, Figure

SAMPLE = Path(__file__).resolve().parents[1] / "tests" / "golden" / "lua.nfsdb.xz"
CACHE = Path(__file__).resolve().parents[1] / "build" / "bench"
N_COPIES = 200
GROWTH = (2, 20, 200, 2000)
#: 3 MB to 30 GB
STREAMED = (2, 20, 200, 2000, 20000)
MEGA = 1e6
#: (what grows, how often): traces of generate_trace that grow in one way only
ONE_WAY = (("events", 10**6), ("events", 10**7), ("files", 10**6), ("processes", 10**7))
#: what the figures are held to
MAX_IMAGE_RATIO, MAX_JSON_RATIO, MIN_SPEEDUP, MAX_PEAK_RATIO = 0.6, 1.1, 1.7, 1.5


def scaled(n_copies: int) -> Path:
    """Return the sample scaled, made when it is not there yet."""
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / f"lua-{n_copies}.nfsdb"
    if not target.exists():
        pending = target.with_suffix(".tmp")
        scale.scale(SAMPLE, n_copies, pending)
        pending.rename(target)
    return target


def parse_with(trace: Path, jobs: int, *, with_json: bool = False) -> Candidate:
    """One way to parse: every run makes its files anew."""
    output = CACHE / "out"

    def remove_output() -> None:
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()

    programs = Path(sys.executable).parent
    command = [str(programs / "cas"), "parse", "-q", "-j", str(jobs), "--dbdir", str(output)]
    name = f"cas parse -j{jobs}"
    if with_json:
        command = [str(programs / "etrace_parser"), "-j", str(jobs)]
        name = f"etrace_parser -j{jobs}"
    command.append(str(trace))
    if with_json:
        command.append(str(output / ".nfsdb.json"))
    return Candidate(name, command, prepare=remove_output)


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

    def remove_output() -> None:
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir()

    cas = Path(sys.executable).parent / "cas"
    command = f"{generator} | {cas} parse -q --dbdir {output} -"
    return Candidate(name, ["sh", "-c", command], prepare=remove_output)


def streamed_copies(n_copies: int) -> Candidate:
    """Parse the sample, repeated."""
    sample = CACHE / "lua.nfsdb"
    sample.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    return stream_with(f"{n_copies} copies", f"{compiled('repeat_trace')} {n_copies} <{sample}")


def generated(what: str, n: int) -> Candidate:
    """Parse a trace of `n` processes, or of one process with `n` events."""
    return stream_with(f"{n:,} {what}", f"{compiled('generate_trace')} {what} {n}")


def compiled(name: str) -> Path:
    """Return a program of bench/programs, compiled."""
    program = CACHE / name
    source = Path(__file__).resolve().parent / "programs" / f"{name}.c"
    subprocess.run(["gcc", "-O2", "-o", program, source], check=True)
    return program


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
