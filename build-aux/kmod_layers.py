# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom below kmod/src: folders one way, no circle of files.

A folder includes from itself and from those before it in LAYERS. A .c file and its header count as
one file: two that include each other are a circle too.

    kmod_layers.py [FOLDER]
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "kmod/src"
LAYERS = (".", "record", "task", "event", "probe", "session")
INCLUDE = re.compile(r'^#include "(.+)"$', re.M)


def includes(root: Path) -> dict[Path, set[Path]]:
    """Return for each file below `root`, without its suffix, which others it includes."""
    found: dict[Path, set[Path]] = {}
    for path in sorted(root.rglob("*.[ch]")):
        file = path.relative_to(root).with_suffix("")
        names = [Path(name) for name in INCLUDE.findall(path.read_text())]
        ours = {name.with_suffix("") for name in names if (root / name).exists()}
        found.setdefault(file, set()).update(ours - {file})
    return found


def problems(root: Path) -> list[str]:
    """Return what stands against the order, a line each."""
    graph = includes(root)
    unknown = {str(file.parent) for file in graph} - set(LAYERS)
    if unknown:
        return [f"{folder}: no layer; give it a place in LAYERS" for folder in sorted(unknown)]
    found = [
        f"{file} includes {other}, which is above it"
        for file, others in graph.items()
        for other in sorted(others)
        if LAYERS.index(str(other.parent)) > LAYERS.index(str(file.parent))
    ]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"a circle: {' -> '.join(str(file) for file in reversed(error.args[1]))}")
    return found


def main(words: list[str]) -> int:
    """Run as a program; see the head of this file."""
    found = problems(Path(words[0]) if words else SOURCES)
    for line in found:
        print(f"kmod_layers.py: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
