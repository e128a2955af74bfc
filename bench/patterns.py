# SPDX-License-Identifier: Apache-2.0
"""2,000 command patterns over 45 MB of command lines: libetrace, and fnmatch in a loop.

Seconds of CPU in the engine alone, reading the lines not counted; the two take turns. fnmatch sees
every SAMPLE_STEPth line and is scaled by bytes: all of them would take minutes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import command_lines
from libetrace.select.patterns import PatternSet
from samples import CACHE, MEGA, compiled, verdict

N_PATTERNS, N_BYTES = 2000, 45_000_000
SAMPLE_STEP = 200
ROUNDS = 5
#: what the figure is held to
MAX_SECONDS = 0.5


class Scan(NamedTuple):
    """One run: seconds of CPU to compile the patterns and to match, bytes of text, matches."""

    prepare: float
    scan: float
    n_bytes: int
    n_matches: int


def _files() -> tuple[Path, Path]:
    """Return patterns and command lines as text; made once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    patterns, lines = CACHE / "patterns.txt", CACHE / "command-lines.txt"
    patterns.write_text("\n".join(command_lines.patterns(N_PATTERNS)))
    if not lines.exists():
        pending = lines.with_suffix(".tmp")
        pending.write_text("\n".join(map(" ".join, command_lines.argvs(N_BYTES))))
        pending.rename(lines)
    return patterns, lines


def own_scan(patterns: Path, lines: Path) -> Scan:
    """Match by libetrace, in this process."""
    rows = command_lines.columns(line.split(" ") for line in lines.read_text().split("\n"))
    texts = patterns.read_bytes().split(b"\n")
    start = time.process_time()
    known = PatternSet(texts)
    prepared = time.process_time()
    bits = known.match_rows(rows.strings_start, rows.strings_bytes, rows.argv_start, rows.arguments)
    end = time.process_time()
    n_matches = sum(word.bit_count() for word in array("B", bits))
    return Scan(prepared - start, end - prepared, rows.n_text_bytes, n_matches)


def _run(command: Sequence[str | Path]) -> Scan:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    prepare, scan, n_bytes, n_matches = done.stdout.split()
    return Scan(float(prepare), float(scan), int(n_bytes), int(n_matches))


def main() -> None:
    """Print the figures."""
    files = _files()
    loop = compiled("match_lines")
    own: list[Scan] = []
    fnmatch: list[Scan] = []
    for _ in range(ROUNDS):
        own.append(_run([sys.executable, __file__, *files]))
        fnmatch.append(_run([loop, *files, str(SAMPLE_STEP)]))
    n_bytes = own[0].n_bytes
    print(f"### {N_PATTERNS} patterns over {n_bytes / MEGA:.0f} MB of command lines")
    prepare, scan = (statistics.median(run[at] for run in own) for at in (0, 1))
    n_times = n_bytes / fnmatch[0].n_bytes
    whole = statistics.median(run.scan for run in fnmatch) * n_times
    print(f"libetrace: {prepare:.3f} s to compile, {scan:.3f} s to match,", end=" ")
    print(f"{n_bytes / scan / MEGA:.0f} MB/s, {own[0].n_matches} matches")
    print(f"fnmatch in a loop: {whole:.1f} s, {n_times:.0f} times a sample\n")
    print(verdict("s to compile and match", prepare + scan, MAX_SECONDS, at_most=True) + "\n")


if __name__ == "__main__":
    print(*own_scan(Path(sys.argv[1]), Path(sys.argv[2])))
