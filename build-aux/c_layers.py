# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom in the C programs: folders one way, no circle of files.

A folder includes from itself and from those before it in LAYERS. A .c file and its header count as
one file: two that include each other are a circle too.

    c_layers.py [TOP]
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
LAYERS = {
    "kmod/src": (".", "record", "task", "event", "probe", "session"),
    "native/ptrace": (".", "output", "task", "response", "event", "session"),
    "native/windows": ("text", "trace"),
}
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


def problems(root: Path, layers: tuple[str, ...]) -> list[str]:
    """Return what breaks the order of the folders below `root`, one line each."""
    graph = includes(root)
    unknown = {str(file.parent) for file in graph} - set(layers)
    if unknown:
        return [f"{folder}: no layer; give it a place in LAYERS" for folder in sorted(unknown)]
    found = [
        f"{file} includes {other}, which is above it"
        for file, others in graph.items()
        for other in sorted(others)
        if layers.index(str(other.parent)) > layers.index(str(file.parent))
    ]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"a circle: {' -> '.join(str(file) for file in reversed(error.args[1]))}")
    return found


def main(words: list[str]) -> int:
    """Run as a program; see the head of this file."""
    top = Path(words[0]) if words else TOP
    found = [f"{root}: {line}" for root in LAYERS for line in problems(top / root, LAYERS[root])]
    for line in found:
        print(f"c_layers.py: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
