# SPDX-License-Identifier: Apache-2.0
"""`etrace timeline` and `etrace critical-path` of 100,000 processes: the Lua build, repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import paired
import parser as parser_bench
from paired import Candidate
from parser import CACHE, MEGA, verdict

from etrace.nfsdb.store import open_database

PROGRAMS = Path(sys.executable).parent
DATABASE = CACHE / "timeline"
N_COPIES = 870
MAX_SECONDS = 5.0


def make_database() -> int:
    """Parse the repeated sample, once; returns the number of processes."""
    if not (DATABASE / ".nfsdb.img").exists():
        DATABASE.mkdir(parents=True, exist_ok=True)
        command = parser_bench.streamed_copies(N_COPIES).command[-1]
        generator = str(command).partition("|")[0]
        parse = f"{PROGRAMS / 'cas'} parse -q --dbdir {DATABASE} -"
        subprocess.run(["sh", "-c", f"{generator} | {parse}"], check=True)
    return len(set(open_database(DATABASE)["executions"]["upid"]))


def main() -> None:
    """Print the figures and what they are held to."""
    n, program = make_database(), str(PROGRAMS / "etrace")
    print(f"### timeline of {n:,} processes\n| | CPU s | wall s | peak MB | MB |")
    print("|---|---|---|---|---|")
    lines = []
    for name, words in (
        ("timeline --to chrome", ["timeline", "--to", "chrome"]),
        ("timeline --to perfetto", ["timeline", "--to", "perfetto"]),
        ("timeline --lanes packed", ["timeline", "--lanes", "packed"]),
        ("critical-path", ["critical-path"]),
    ):
        target = DATABASE / "out"
        output = ["-o", str(target)] if words[0] == "timeline" else []
        run = paired.once(Candidate(name, [program, *words, str(DATABASE), *output]))
        size = target.stat().st_size / MEGA if output else 0
        peak = run.peak_bytes / MEGA
        print(f"| {name} | {run.cpu:.2f} | {run.wall:.2f} | {peak:.0f} | {size:.0f} |")
        if output:
            lines.append(verdict(f"CPU s, {name}", run.cpu, MAX_SECONDS, at_most=True))
    print("\n" + "\n".join(lines) + "\n")
