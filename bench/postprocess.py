# SPDX-License-Identifier: Apache-2.0
"""What `cas pp` costs: a Lua build, its trace scaled 200 times, by phase; no compiler is asked."""

from __future__ import annotations

import json

import paired
from paired import Candidate
from samples import CACHE, CAS, N_COPIES, cas, database, verdict

DATABASE = CACHE / "pp"
#: what the figures are held to
MAX_SECONDS, MAX_PEAK_MB = 1.5, 1000.0
PHASES = ("wrappers", "patterns", "linked", "compilations")
PATTERNS = [f"*/bin/tool{n} *-o *{n}.o" for n in range(98)] + ["make*", "*collect2*"]


def make_database() -> None:
    """Make the database of the repeated sample, with 100 command patterns."""
    database("pp", N_COPIES, "--json")
    config = {"exclude_command_variants": {"*": PATTERNS}}
    (DATABASE / ".bas_config").write_text(json.dumps(config))
    cas(DATABASE, "cache", "--force", "-q")
    cas(DATABASE, "pp", "--no-json", "--force")


def pp(*options: str) -> Candidate:
    """One way to post-process: everything is made again."""
    command = [CAS, "pp", "--db", str(DATABASE), "--force", *options]
    return Candidate(f"cas pp {' '.join(options)}", command)


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
