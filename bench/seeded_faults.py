# SPDX-License-Identifier: Apache-2.0
"""Does `etrace check` find a fault that somebody put into a build?

Each project of bench/seeded/ has files, a build that has no fault, and faults: what is reported (an
id and a file), then a file, what is taken out of it and what is put there instead, and so on. Each
fault is put into a fresh copy alone, which is built, traced by ptrace, and checked. Without a fault
nothing must be reported.

    python3 bench/seeded_faults.py [--work DIR] [--jobs N] [PROJECT...]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SEEDED = Path(__file__).resolve().parent / "seeded"
BIN = Path(sys.executable).parent


def read(name: str) -> dict[str, Any]:
    """Return a project, with what it has from the one that it is like."""
    with (SEEDED / f"{name}.toml").open("rb") as file:
        project = tomllib.load(file)
    return {**read(project["like"]), **project} if "like" in project else project


def reports(project: dict[str, Any], changes: Sequence[str], tree: Path, jobs: int) -> list[str]:
    """Build a project in a tree with changes; return what is reported, by id and file."""
    shutil.rmtree(tree, ignore_errors=True)
    files = dict(project["files"])
    for name, old, new in zip(*[iter(changes)] * 3, strict=True):
        if files[name].count(old) != 1:
            raise ValueError(f"{name} must have this once: {old}")
        files[name] = files[name].replace(old, new)
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text.rstrip("\n") + "\n")
    if prepare := project.get("prepare"):
        subprocess.run(["sh", "-c", prepare], cwd=tree, check=True, capture_output=True)
    traced = ["run", "--env", "-q", "--backend", "ptrace", "--", *project["build"].split()]
    for words in (["etrace", *traced, f"-j{jobs}"], ["cas", "parse"], ["cas", "pp"]):
        done = subprocess.run(
            [BIN / words[0], *words[1:]], cwd=tree, check=False, capture_output=True, text=True
        )
        if done.returncode:
            print(f"{tree.name}: {words[0]} {words[1]}: {done.stderr[-1000:]}", file=sys.stderr)
    check = subprocess.run(
        [BIN / "etrace", "check", "--json"], cwd=tree, check=False, capture_output=True, text=True
    )
    if not check.stdout:
        raise ValueError(check.stderr)
    return [
        f"{fault['id']} {Path(fault['file']).relative_to(tree)}"
        for fault in json.loads(check.stdout)["faults"]
    ]


def row(name: str, work: Path, jobs: int) -> Iterator[int]:
    """Print the row of a project; yield how many faults it has, were found, and more reports."""
    project, tree = read(name), work / name
    false = reports(project, [], tree, jobs)
    n_found = 0
    for report in false:
        print(f"{name}: without a fault: {report}", file=sys.stderr)
    for expected, *changes in project["faults"]:
        found = reports(project, changes, tree, jobs)
        n_found += expected in found
        if found != [expected]:
            said = "found" if expected in found else "MISSED"
            print(f"{name}: {said}: {expected}: {changes}: {found}", file=sys.stderr)
    print(f"| {name} | {len(project['faults'])} | {n_found} | {len(false)} |", flush=True)
    yield from (len(project["faults"]), n_found, len(false))


def main() -> None:
    """Print the table; the exit status is 1 when a fault was missed or a false one reported."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = sorted(path.stem for path in SEEDED.glob("*.toml"))
    parser.add_argument("projects", metavar="PROJECT", nargs="*", default=names)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "etrace-seeded")
    parser.add_argument("--jobs", type=int, default=1, help="build with so many jobs")
    args = parser.parse_args()
    print("| project | seeded | found | reported without |\n|---|--:|--:|--:|")
    work = args.work.resolve()
    totals = [
        sum(each)
        for each in zip(*(row(name, work, args.jobs) for name in args.projects), strict=True)
    ]
    print(f"| all | {' | '.join(map(str, totals))} |")
    sys.exit(totals[0] != totals[1] or totals[2] > 0)


if __name__ == "__main__":
    main()
