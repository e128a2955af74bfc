# SPDX-License-Identifier: Apache-2.0
"""What `cas pp` costs: a Lua build, its trace scaled 200 times, by phase; no compiler is asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import paired
from paired import Candidate
from parser import CACHE, N_COPIES, scaled, verdict

PROGRAMS = Path(sys.executable).parent
DATABASE = CACHE / "pp"
#: what the figures are held to
MAX_SECONDS, MAX_PEAK_MB = 1.5, 1000.0
PHASES = ("wrappers", "patterns", "linked", "compilations")
PATTERNS = [f"*/bin/tool{n} *-o *{n}.o" for n in range(98)] + ["make*", "*collect2*"]


def make_database() -> None:
    """Parse the scaled trace and make its image, once."""
    DATABASE.mkdir(parents=True, exist_ok=True)
    config = {"exclude_command_variants": {"*": PATTERNS}}
    (DATABASE / ".bas_config").write_text(json.dumps(config))
    if not (DATABASE / ".nfsdb.json").exists():
        trace = scaled(N_COPIES)
        subprocess.run([PROGRAMS / "etrace_parser", trace, DATABASE / ".nfsdb.json"], check=True)
    cache: list[str | Path] = [PROGRAMS / "cas", "cache", "--dbdir", DATABASE, "--force", "-q"]
    subprocess.run(cache, check=True)
    subprocess.run(pp("--no-json").command, check=True, stdout=subprocess.DEVNULL)


def pp(*options: str) -> Candidate:
    """One way to post-process: everything is made again."""
    command = [PROGRAMS / "cas", "pp", "--dbdir", DATABASE, "--force", *options]
    return Candidate(f"cas pp {' '.join(options)}", [str(part) for part in command])


def main(rounds: int = 5) -> None:
    """Print the figures and what they are held to."""
    make_database()
    only = [pp("--no-json", f"--{phase}") for phase in PHASES]
    figures = paired.compare([pp(), pp("--no-json"), *only], rounds)
    print(paired.table(f"cas pp, {N_COPIES} Lua builds", figures))
    print(verdict("seconds of cas pp", figures[0].wall, MAX_SECONDS, at_most=True))
    print(verdict("MB at most", figures[0].peak_bytes / 1e6, MAX_PEAK_MB, at_most=True))


if __name__ == "__main__":
    main()
