# SPDX-License-Identifier: Apache-2.0
"""2,000 command patterns over 45 MB of command lines: libetrace, vectorscan, fnmatch in a loop.

Seconds of CPU in the engine alone, reading the lines not counted; candidates take turns. fnmatch
sees every SAMPLE_STEPth line and is scaled by bytes: all of them would take minutes. Each engine
says how many matches it found; they must agree.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import command_lines
from libetrace.select.patterns import PatternSet

HERE = Path(__file__).parent
CACHE = HERE.parent / "build" / "bench"
N_PATTERNS, N_BYTES = 2000, 45_000_000
SAMPLE_STEP = 200
ROUNDS = 5
#: what the figure is held to
MAX_SECONDS = 0.5
OWN = "libetrace"


@dataclass(frozen=True, slots=True)
class Scan:
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
    compiled = PatternSet(texts)
    prepared = time.process_time()
    bits = compiled.match_rows(
        rows.strings_start, rows.strings_bytes, rows.argv_start, rows.arguments
    )
    end = time.process_time()
    n_matches = sum(word.bit_count() for word in array("B", bits))
    return Scan(prepared - start, end - prepared, rows.n_text_bytes, n_matches)


def _programs() -> tuple[dict[str, list[str]], str]:
    """Return the commands that take turns, and why vectorscan is not among them, if it is not."""
    files = [str(path) for path in _files()]
    loop, vectorscan = CACHE / "match_fnmatch", CACHE / "match_vectorscan"
    compiler = shutil.which("cc") or "gcc"
    compile_it = [compiler, "-O2", str(HERE / "programs" / "match_lines.c"), "-o"]
    subprocess.run([*compile_it, str(loop)], check=True)
    commands = {
        OWN: [sys.executable, __file__, *files],
        "fnmatch in a loop": [str(loop), *files, str(SAMPLE_STEP)],
    }
    try:
        subprocess.run(
            [*compile_it, str(vectorscan), "-DVECTORSCAN", "-lhs"], check=True, capture_output=True
        )
    except subprocess.CalledProcessError:
        return commands, "vectorscan: not measured; apt-get install libvectorscan-dev"
    return {**commands, "vectorscan": [str(vectorscan), *files, "1"]}, ""


def _run(command: Sequence[str]) -> Scan:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    if done.stdout.startswith("{"):
        return Scan(**json.loads(done.stdout))
    prepare, scan, n_bytes, n_matches = done.stdout.split()
    return Scan(float(prepare), float(scan), int(n_bytes), int(n_matches))


def _row(name: str, runs: Sequence[Scan], own: Sequence[Scan]) -> str:
    n_bytes = own[0].n_bytes

    def whole(run: Scan) -> float:
        return run.scan * n_bytes / run.n_bytes

    ratio = statistics.median(whole(a) / b.scan for a, b in zip(runs, own, strict=True))
    scan = statistics.median(map(whole, runs))
    prepare = statistics.median(run.prepare for run in runs)
    sampled = f", {n_bytes / runs[0].n_bytes:.0f} times a sample" if name.startswith("fn") else ""
    return (
        f"| {name}{sampled} | {prepare:.3f} | {scan:.3f} | {n_bytes / scan / 1e6:.2f}"
        f" | {ratio:.2f} | {runs[0].n_matches} |"
    )


def report(runs: Mapping[str, Sequence[Scan]]) -> str:
    """Return the table, and the verdict on what is promised."""
    own = runs[OWN]
    seconds = statistics.median(run.scan + run.prepare for run in own)
    verdict = "ok  " if seconds <= MAX_SECONDS else "MISS"
    lines = [
        f"### {N_PATTERNS} patterns over {own[0].n_bytes / 1e6:.0f} MB of command lines",
        "| | prepare s | scan s | MB/s | scan ratio | matches |",
        "|---|---|---|---|---|---|",
        *(_row(name, of, own) for name, of in runs.items()),
        "",
        f"{verdict} compile and match: {seconds:.2f} s (at most {MAX_SECONDS})",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    commands, missing = _programs()
    runs: dict[str, list[Scan]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            runs[name].append(_run(command))
    print(report(runs))
    if missing:
        print(missing)
    found = {of[0].n_matches for name, of in runs.items() if not name.startswith("fn")}
    if len(found) > 1:
        raise SystemExit(f"the engines disagree on the number of matches: {sorted(found)}")
    print()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(asdict(own_scan(Path(sys.argv[1]), Path(sys.argv[2])))))
    else:
        main()
