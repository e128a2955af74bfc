# SPDX-License-Identifier: Apache-2.0
"""What dependencies cost: all closures of a Lua build scaled 200 times, and one `cas deps`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import paired
from paired import Candidate
from parser import CACHE, N_COPIES, scaled, verdict

from etrace.nfsdb.store import open_database
from etrace.postprocess.closures import build_graph, close_modules
from etrace.postprocess.config import load

PROGRAMS = Path(sys.executable).parent
DATABASE = CACHE / "dependencies"
#: what the figures are held to; the ancestor took 24.9 s on this kind of machine
MAX_SECONDS = 0.5


def make_database() -> None:
    """Parse the scaled trace and find its modules, once."""
    DATABASE.mkdir(parents=True, exist_ok=True)
    if not (DATABASE / ".nfsdb.json").exists():
        trace = scaled(N_COPIES)
        subprocess.run([PROGRAMS / "etrace_parser", trace, DATABASE / ".nfsdb.json"], check=True)
    command: list[str | Path] = [PROGRAMS / "cas", "pp", "--dbdir", DATABASE]
    command += ["--linked", "--no-json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(rounds: int) -> tuple[float, float, str]:
    """Return seconds of the graph alone and of all closures with it, medians, and what there is."""
    image = open_database(DATABASE)
    config, n_links = load(DATABASE), image["linked"].n_rows
    graphs, closures = [], []
    modules: list[int] = []
    n_files = 0
    for _ in range(rounds):
        start = time.perf_counter()
        build_graph(image)
        graphs.append(time.perf_counter() - start)
        start = time.perf_counter()
        modules, direct, full = close_modules(image, config)
        closures.append(time.perf_counter() - start)
        n_files = sum(len(paths) for lists in (direct, full) for paths in lists.values())
    found = (
        f"{n_links} links of {len(modules)} modules, {image['opens'].n_rows} opens: {n_files} files"
    )
    return statistics.median(graphs), statistics.median(closures), found


def main(rounds: int = 7) -> None:
    """Print the figures and what they are held to."""
    make_database()
    graph, closures, found = measure(rounds)
    print(f"### closures\n{found}\n")
    print(f"graph {graph:.3f} s, graph and all closures {closures:.3f} s\n")
    print(verdict("seconds of all closures", closures, MAX_SECONDS, at_most=True))
    words = [PROGRAMS / "cas", "deps", "--dbdir", DATABASE, "-l", "src/lua"]
    candidate = Candidate("cas deps", [str(word) for word in words])
    print(paired.table(f"one query, {N_COPIES} Lua builds", paired.compare([candidate], rounds)))


if __name__ == "__main__":
    main()
