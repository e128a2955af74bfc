# SPDX-License-Identifier: Apache-2.0
"""What dependencies cost: all closures of a Lua build scaled 200 times, and one `cas deps`."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import libetrace
import paired
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from paired import Candidate
from samples import CACHE, CAS, N_COPIES, cas, database, distinct, verdict

from etrace.nfsdb.store import open_database

DATABASE = CACHE / "dependencies"
#: what the figures are held to; Samsung CAS took 24.9 s on this kind of machine
MAX_SECONDS = 0.5
N_MODULES, N_FILES = 1800, 400
#: one binary of many builds against one build: CPU time, start of Python included
N_DISTINCT, MAX_GROWTH = 500, 1.5


def measure(rounds: int) -> tuple[float, float, str]:
    """Return seconds of the graph alone and of all modules asked, medians, and what there is."""
    image = open_database(DATABASE)
    modules = sorted(set(image["linked"]["path"]))
    graphs, closures = [], []
    n_files = 0
    for _ in range(rounds):
        dependencies = Dependencies(image)
        start = time.process_time()
        dependencies.graph(reverse=False, wrapped=False, programs=False)
        graphs.append(time.process_time() - start)
        start = time.process_time()
        n_files = sum(
            len(closure.paths)
            for module in modules
            for rules in (Rules(), Rules(is_direct=True))
            for closure in dependencies.closures([module], rules)
        )
        closures.append(time.process_time() - start)
    n_opens = image["opens"].n_rows
    n_links = image["linked"].n_rows
    found = f"{n_links} links of {len(modules)} modules, {n_opens} opens: {n_files} files"
    return statistics.median(graphs), statistics.median(closures), found


def make_modules() -> Path:
    """Make a database of modules that share nothing, each linked of its own files, once."""
    directory = CACHE / "modules"
    if not (directory / ".nfsdb.img").exists():
        directory.mkdir(parents=True, exist_ok=True)
        entries = [_link(module) for module in range(N_MODULES)]
        libetrace.create_nfsdb(entries, "/w", "", [], [], directory / ".nfsdb.img")
        cas(directory, "pp", "--no-json", "--linked", "--graph")
    return directory


def _link(module: int) -> dict[str, Any]:
    upid, at = (module + 1) << 22, module * (N_FILES + 2)
    reads = [
        {"p": f"/w/{module}/{file}.o", "b": at + file, "e": at + file + 1, "m": 0x60, "s": 1}
        for file in range(N_FILES)
    ]
    made = {"p": f"/w/{module}/out", "b": at + N_FILES, "e": at + N_FILES + 1, "m": 0x61, "s": 1}
    argv = ["ld", "-o", "out", *(f"{file}.o" for file in range(N_FILES))]
    return {
        "p": upid, "x": 1, "s": at, "e": N_FILES, "b": "/usr/bin/ld", "w": f"/w/{module}",
        "v": argv, "c": [], "r": {"p": -1, "x": 0}, "i": [], "u": [], "!": 0, "o": [*reads, made],
    }  # fmt: skip


def ask_modules() -> str:
    """Ask for the files of every module in a process of its own; returns its cost."""
    image = str(make_modules() / ".nfsdb.img")
    words = ["import libetrace", "db = libetrace.nfsdb()", f"db.load({image!r})"]
    words += ["sum(db.mdeps_count(path) for path, _ in db.linked_module_paths())"]
    run = paired.once(Candidate("", [sys.executable, "-c", "; ".join(words)]))
    return f"{run.cpu:.2f} s CPU"


def report_growth(rounds: int) -> None:
    """Print what `cas deps` of one binary costs in one build and among many distinct ones."""
    candidates = [
        Candidate(f"of {n}", [CAS, "deps", "--db", str(distinct(n)), "/tmp/b/lua-00000/src/lua"])
        for n in (1, N_DISTINCT)
    ]
    figures = paired.compare(candidates, rounds)
    print(paired.table("one query, distinct Lua builds", figures))
    name = f"CPU ratio of {N_DISTINCT} builds to one"
    print(verdict(name, figures[1].cpu_ratio, MAX_GROWTH, at_most=True))


def main(rounds: int = 7) -> None:
    """Print the figures and what they are held to."""
    print(f"### {N_MODULES} modules of {N_FILES} files each, all asked\n{ask_modules()}\n")
    database("dependencies")
    cas(DATABASE, "pp", "--linked", "--no-json")
    graph, closures, found = measure(rounds)
    print(f"### closures\n{found}\n")
    print(f"graph {graph:.3f} s, all modules asked {closures:.3f} s (CPU)\n")
    print(verdict("CPU seconds of all modules asked", closures, MAX_SECONDS, at_most=True))
    candidate = Candidate("cas deps", [CAS, "deps", "--db", str(DATABASE), "-l", "src/lua"])
    print(paired.table(f"one query, {N_COPIES} Lua builds", paired.compare([candidate], rounds)))
    report_growth(rounds)


if __name__ == "__main__":
    main()
