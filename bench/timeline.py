# SPDX-License-Identifier: Apache-2.0
"""`etrace timeline` and `etrace critical-path` of 100,000 processes: the Lua build, repeated."""

from __future__ import annotations

import paired
from paired import Candidate
from samples import MEGA, PROGRAMS, database, verdict

from etrace.nfsdb.store import open_database

N_COPIES = 870
MAX_SECONDS = 5.0
#: of critical-path
MAX_PATH_SECONDS, MAX_PATH_MB = 1.5, 200.0


def main() -> None:
    """Print the figures and what they are held to."""
    directory, program = database("timeline", N_COPIES), str(PROGRAMS / "etrace")
    n = len(set(open_database(directory)["executions"]["upid"]))
    print(f"### timeline of {n:,} processes\n| | CPU s | wall s | peak MB | MB |")
    print("|---|---|---|---|---|")
    lines = []
    for name, words in (
        ("timeline --format chrome", ["timeline", "--format", "chrome"]),
        ("timeline --format perfetto", ["timeline", "--format", "perfetto"]),
        ("timeline --lanes packed", ["timeline", "--lanes", "packed"]),
        ("critical-path", ["critical-path"]),
    ):
        target = directory / "out"
        output = ["-o", str(target)] if words[0] == "timeline" else []
        run = paired.once(Candidate(name, [program, *words, str(directory), *output]))
        size = target.stat().st_size / MEGA if output else 0
        peak = run.peak_bytes / MEGA
        print(f"| {name} | {run.cpu:.2f} | {run.wall:.2f} | {peak:.0f} | {size:.0f} |")
        if name == "critical-path":
            lines.append(verdict(f"CPU s, {name}", run.cpu, MAX_PATH_SECONDS, at_most=True))
            lines.append(verdict(f"MB, {name}", peak, MAX_PATH_MB, at_most=True))
        if output:
            lines.append(verdict(f"CPU s, {name}", run.cpu, MAX_SECONDS, at_most=True))
    print("\n" + "\n".join(lines) + "\n")
