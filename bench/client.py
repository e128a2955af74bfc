# SPDX-License-Identifier: Apache-2.0
"""What a `cas` command costs from its start to its end, on the warm image of a Lua build.

The baseline is an interpreter that does nothing. Each is held to 150 ms: of CPU, for
whoever else runs on the machine would be measured in the wall clock; one thread does it all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import paired
import scale

from etrace.parse import parse_trace

TOP = Path(__file__).parent.parent
CACHE = TOP / "build" / "bench" / "client"
GOLDEN = TOP / "tests" / "golden" / "lua.nfsdb.xz"
CAS = str(Path(sys.executable).with_name("cas"))
MAX_SECONDS = 0.150
ROUNDS = 15
QUERIES = (
    "--help",
    "stat",
    "ref_files",
    "ref_files --filter [path=*.c,type=wc]and[access=r]",
    "commands --json",
    "execs --details",
    "faccess --path src/lua.h",
    "binaries ref_files --count",
    "linked_modules --details",
    "compilation_info_for --path src/lua.c",
    "deps src/lua --relative",
)


def prepare() -> Path:
    """Make a database in the cache; returns its directory."""
    shutil.rmtree(CACHE, ignore_errors=True)
    CACHE.mkdir(parents=True)
    trace = CACHE / ".nfsdb"
    trace.write_bytes(scale.read_trace(GOLDEN))
    parse_trace([str(trace)], str(CACHE / ".nfsdb.json"))
    for command in ("pp --quiet", "cache"):
        words = [CAS, *command.split(), "--dbdir", str(CACHE)]
        subprocess.run(words, check=True, capture_output=True)
    return CACHE


def main() -> None:
    """Print the medians, and fail when a query takes longer than it may."""
    database = prepare()
    candidates = [paired.Candidate("python -c pass", [sys.executable, "-c", "pass"])]
    for query in QUERIES:
        command = [CAS, *query.split()]
        candidates.append(paired.Candidate(f"cas {query}", command, cwd=database))
    figures = paired.compare(candidates, ROUNDS)
    print(paired.table("cas on the image of a Lua build, warm", figures))
    slow = [figure.name for figure in figures if figure.cpu > MAX_SECONDS]
    print(f"longer than {MAX_SECONDS * 1000:.0f} ms: {', '.join(slow) or 'none'}\n")


if __name__ == "__main__":
    main()
