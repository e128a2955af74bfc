# SPDX-License-Identifier: Apache-2.0
"""What a `cas` command costs from its start to its end, on the warm image of a Lua build.

The baseline is an interpreter that does nothing. Each is held to 150 ms: of CPU, for
whoever else runs on the machine would be measured in the wall clock; one thread does it all.
"""

from __future__ import annotations

import sys

import paired
from samples import CAS, cas, database

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


def main() -> None:
    """Print the medians, and fail when a query takes longer than it may."""
    directory = database("client", 1, "--json")
    cas(directory, "pp", "--quiet")
    cas(directory, "cache")
    candidates = [paired.Candidate("python -c pass", [sys.executable, "-c", "pass"])]
    for query in QUERIES:
        command = [CAS, *query.split()]
        candidates.append(paired.Candidate(f"cas {query}", command, cwd=directory))
    figures = paired.compare(candidates, ROUNDS)
    print(paired.table("cas on the image of a Lua build, warm", figures))
    slow = [figure.name for figure in figures if figure.cpu > MAX_SECONDS]
    print(f"longer than {MAX_SECONDS * 1000:.0f} ms: {', '.join(slow) or 'none'}\n")


if __name__ == "__main__":
    main()
