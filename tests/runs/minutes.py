# SPDX-License-Identifier: Apache-2.0
"""Shows where the minutes of test runs go: `-m runs.minutes FILE..`, as Markdown tables.

A file is a record of pytest (record.py) or the steps of bare roots (`steps.json` of bare/run.py).
Seconds are wall time of one worker: those of several workers overlap.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

N_TESTS = 40  # slowest that are shown
MIN_FIXTURE_S = 2.0  # in all, for a fixture to be shown
PHASES = ("set-up", "call", "teardown")


def main(paths: list[str]) -> int:
    """Print the tables of each file."""
    if not paths:
        print("minutes: no records; make test leaves them in build/test-runs", file=sys.stderr)
        return 2
    for path in paths:
        content = json.loads(Path(path).read_text())
        print(f"\n## {path}\n")
        print("\n".join(_steps(content) if isinstance(content, list) else _run(content)))
    return 0


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return lines of a table whose first column is text and whose others are numbers."""
    names = list(head)
    cells = [[f"{c:.1f}" if isinstance(c, float) else str(c) for c in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (names, ["---", *["---:"] * (len(names) - 1)])] + [
        f"| {' | '.join(row)} |" for row in cells
    ]


def _steps(steps: list[dict[str, Any]]) -> list[str]:
    rows = [(f"{s['plan']}: {s['step']}", float(s["seconds"])) for s in steps]
    return _table(("step", "s"), rows)


def _run(record: dict[str, Any]) -> list[str]:
    folders: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for nodeid, _, _, *seconds in record["tests"]:
        row = folders[_folder(nodeid)]
        row[0] += 1
        row[1:] = [sum(pair) for pair in zip(row[1:], seconds, strict=True)]
    fixtures: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, scope, _, spent in record["fixtures"]:
        fixtures[name, scope].append(spent)
    slowest = sorted(record["tests"], key=lambda test: -sum(test[3:]))[:N_TESTS]
    by_time = sorted(folders.items(), key=lambda item: -sum(item[1][1:]))
    long = [(*key, len(s), sum(s), max(s)) for key, s in fixtures.items()]
    in_workers = sum(sum(row[1:]) for row in folders.values())
    span = record["ended"] - record["began"]
    return [
        f"{len(record['tests'])} tests in {span:.0f} s, {in_workers:.0f} s of workers\n",
        *_table(
            ("folder", "tests", *PHASES, "s"),
            [(folder, int(n), *s, sum(s)) for folder, (n, *s) in by_time],
        ),
        "",
        *_table(
            ("fixture", "scope", "made", "s", "longest"),
            [row for row in sorted(long, key=lambda row: -row[3]) if row[3] >= MIN_FIXTURE_S],
        ),
        "",
        *_table(
            ("test", *PHASES),
            [(nodeid.replace("|", "\\|"), *seconds) for nodeid, _, _, *seconds in slowest],
        ),
    ]


def _folder(nodeid: str) -> str:
    """Return the folder that a test counts for: those of a guest have a row of their own."""
    if "[guest-" in nodeid:
        return "guest"
    parts = nodeid.split("::", 1)[0].split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else "tests"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
