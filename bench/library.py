# SPDX-License-Identifier: Apache-2.0
"""What `import libetrace` costs on the Lua sample scaled 200 times: load, iterate, filter, walk.

Wall clock in this process: medians and the fastest of some rounds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import libetrace
from samples import N_COPIES, database

ROUNDS = 7


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return median and least of some rounds, in seconds."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds)


def run_python(code: str) -> Callable[[], object]:
    """Return what runs some code in a new interpreter."""
    command = [sys.executable, "-I", "-c", code]
    return lambda: subprocess.run(command, check=True)


def load(image: Path) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    db.load(image)
    return db


def questions(image: Path) -> dict[str, Callable[[], object]]:
    db = load(image)
    root = db.source_root
    return {
        "python -c pass": run_python("pass"),
        "import libetrace": run_python("import libetrace"),
        "import, load": run_python(f"import libetrace; libetrace.nfsdb().load({str(image)!r})"),
        "load": lambda: load(image),
        f"iterate {len(db):,} executions": lambda: sum(1 for _ in db),
        "their binaries": lambda: [entry.binary for entry in db],
        f"iterate {len(db.opens_iter()):,} opens": lambda: sum(1 for _ in db.opens_iter()),
        "opens by wildcard, rows": lambda: db.filtered_opens_iter(wc="*/src/l*.[ch]"),
        "opens by expression, rows": lambda: db.filtered_opens_iter(re=r".*\.h$"),
        "opens by part, access, root": lambda: db.filtered_opens_iter(
            has_path="lua", has_access=0, at_source_root=True
        ),
        "paths by wildcard": lambda: db.filtered_paths(wc="*.h"),
        "executions by wildcard on commands": lambda: db.filtered_execs_iter(cmd_wc="*gcc*-c*"),
        "opens of one path": lambda: db.filemap[f"{root}/src/lua.h"],
    }


def main() -> None:
    """Print the table."""
    image = database("library") / ".nfsdb.img"
    print(f"### libetrace, {image.stat().st_size / 1e6:.0f} MB image ({N_COPIES} x Lua)")
    print("| | median ms | least ms |\n|---|---|---|")
    for name, work in questions(image).items():
        median, least = measure(work)
        print(f"| {name} | {median * 1000:.2f} | {least * 1000:.2f} |")
    print()


if __name__ == "__main__":
    main()
