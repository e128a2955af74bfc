# SPDX-License-Identifier: Apache-2.0
"""Check that the packages of libetrace import downwards only; print the imports that do not.

import-linter reads `import`; this reads `cimport` too. A package may import what is named before it
in ORDER, and its own modules, but declarations not in a circle.

    arrows.py [FOLDER]
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).resolve().parents[1] / "cython/libetrace"
ORDER = ("core", "image", "trace", "convert", "select", "depend", "db")
#: packages beside those above -> what they may import
BESIDE = {"xray": ("core",), "timing": ("core", "image")}
IMPORT = re.compile(r"\s*(?:from libetrace\.([\w.]+) c?import (.*)|c?import libetrace\.([\w.]+))")


def main(words: list[str]) -> int:
    """Print what is wrong; 1 when something is."""
    top = Path(words[0]) if words else TOP
    wrong = unknown_packages(top) or [*upward_imports(top), *circles(top)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def sources(top: Path) -> Iterator[tuple[str, Path]]:
    """Yield each source that is compiled or run, with the name of its module."""
    for path in sorted(top.rglob("*")):
        if path.suffix in {".py", ".pyx", ".pxd"} and path.parent != top:
            yield ".".join(path.relative_to(top).with_suffix("").parts), path


def imported(top: Path, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the module of each import from libetrace."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := IMPORT.match(line):
            module, names, whole = found.groups()
            if module and (top / module).is_dir():  # from libetrace.image import arrow
                yield from ((number, f"{module}.{one.split()[0]}") for one in names.split(","))
            else:
                yield number, module or whole


def unknown_packages(top: Path) -> list[str]:
    """Return a line for each package without a place."""
    found = {module.split(".")[0] for module, _ in sources(top)} - {*ORDER, *BESIDE}
    return [f"{package}: no package of ORDER or BESIDE" for package in sorted(found)]


def allowed(package: str) -> set[str]:
    """Return the packages that one may import."""
    if package in BESIDE:
        return {package, *BESIDE[package]}
    return set(ORDER[: ORDER.index(package) + 1])


def upward_imports(top: Path) -> Iterator[str]:
    """Yield a line for each import of a package from a higher one."""
    for module, path in sources(top):
        own = module.split(".")[0]
        for number, other in imported(top, path):
            if other.split(".")[0] not in allowed(own):
                yield f"{path.relative_to(top)}:{number}: {own} may not import {other}"


def circles(top: Path) -> Iterator[str]:
    """Yield a line for a circle of declarations or of Python modules, when there is one."""
    graph = {
        module: {other for _, other in imported(top, path)}
        for module, path in sources(top)
        if path.suffix != ".pyx"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"a circle of imports: {' <- '.join(error.args[1])}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
