# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom in the C programs: folders one way, no circle of files.

FOLDERS names every folder that has C sources, and the folders that it may include besides itself.
A .c file and its header count as one file: two that include each other are a circle too.

    c_layers.py [TOP]
"""

from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
KMOD = (
    "kmod/src",
    *(f"kmod/src/{name}" for name in ("record", "task", "event", "probe", "session")),
)
CAPTURE = ("native/format", "native/capture")
PTRACE = tuple(f"native/ptrace/{name}" for name in ("task", "event", "session"))
FOLDERS: dict[str, tuple[str, ...]] = {
    **{folder: ("native/format", *KMOD[:at]) for at, folder in enumerate(KMOD)},
    "native/format": (),
    "native/capture": ("native/format",),
    **{folder: (*CAPTURE, *PTRACE[:at]) for at, folder in enumerate(PTRACE)},
    "native/bpf": CAPTURE,
    "native/bpf/kernel": ("native/format", "native/bpf"),
    "native/preload": (),
    "native/preload/library": (*CAPTURE, "native/preload"),
    "native/preload/collector": (*CAPTURE, "native/preload"),
    "native/collect": CAPTURE,
    "native/launcher": CAPTURE,
    "native/sandbox": CAPTURE,
    "native/gcc_input_name": (),
    "native/windows/text": ("native/format",),
    "native/windows/trace": ("native/format", "native/windows/text"),
}
INCLUDE = re.compile(r'^#include "(.+)"$', re.M)
SOURCES = {".c", ".h", ".S", ".cc"}


def source_files(top: Path) -> list[Path]:
    """Return the C files below the two roots, relative to `top`."""
    found = (path for root in ("kmod/src", "native") for path in (top / root).rglob("*"))
    return sorted(path.relative_to(top) for path in found if path.suffix in SOURCES)


def find(top: Path, file: Path, name: str) -> Path | None:
    """Return which of these files `file` includes by `name`; None for a header from elsewhere."""
    folders = [*file.parents, *map(Path, FOLDERS)]
    paths = (folder / name for folder in folders)
    return next((path for path in paths if (top / path).is_file()), None)


def problems(top: Path) -> list[str]:
    """Return what breaks the order, one line each."""
    files = source_files(top)
    unknown = {str(file.parent) for file in files} - set(FOLDERS)
    if unknown:
        return [f"{folder}: give it a place in FOLDERS" for folder in sorted(unknown)]
    graph: dict[Path, set[Path]] = {}
    found = []
    for file in files:
        mine = graph.setdefault(file.with_suffix(""), set())
        allowed = {str(file.parent), *FOLDERS[str(file.parent)]}
        for name in INCLUDE.findall((top / file).read_text()):
            other = find(top, file, name)
            if other is None:
                continue
            if str(other.parent) not in allowed:
                found.append(f"{file} includes {other}, which is not below it")
            mine.update({other.with_suffix("")} - {file.with_suffix("")})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"a circle: {' -> '.join(str(file) for file in reversed(error.args[1]))}")
    return found


def main(words: list[str]) -> int:
    """Run as a program; see the head of this file."""
    found = problems(Path(words[0]) if words else TOP)
    for line in found:
        print(f"c_layers.py: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
