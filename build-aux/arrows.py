# SPDX-License-Identifier: Apache-2.0
"""Check that the packages of libetrace import downwards only; print the imports that do not.

import-linter reads `import`; this reads `cimport` too. A package may import what is named before it
in ORDER, and its own modules, but declarations not in a circle.
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent / "cython/libetrace"
ORDER = ("core", "image", "trace", "convert", "select", "depend", "db")
#: packages beside those above -> what they may import
BESIDE = {"xray": ("core",)}
IMPORT = re.compile(r"\s*(?:from libetrace\.([\w.]+) c?import (.*)|c?import libetrace\.([\w.]+))")


def main() -> int:
    """Print what is wrong; 1 when something is."""
    wrong = [*upward_imports(), *circles()]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def sources() -> Iterator[tuple[str, Path]]:
    """Yield each source that is compiled or run, with the name of its module."""
    for path in sorted(TOP.rglob("*")):
        if path.suffix in {".py", ".pyx", ".pxd"} and path.parent != TOP:
            yield ".".join(path.relative_to(TOP).with_suffix("").parts), path


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the module of each import from libetrace."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if found := IMPORT.match(line):
            module, names, whole = found.groups()
            if module and (TOP / module).is_dir():  # from libetrace.image import arrow
                yield from ((number, f"{module}.{one.split()[0]}") for one in names.split(","))
            else:
                yield number, module or whole


def allowed(package: str) -> set[str]:
    """Return the packages that one may import."""
    if package in BESIDE:
        return {package, *BESIDE[package]}
    return set(ORDER[: ORDER.index(package) + 1])


def upward_imports() -> Iterator[str]:
    """Yield a line for each import of a package from a higher one."""
    for module, path in sources():
        own = module.split(".")[0]
        for number, other in imported(path):
            if other.split(".")[0] not in allowed(own):
                place = path.relative_to(TOP.parent.parent)
                yield f"{place}:{number}: {own} may not import {other}"


def circles() -> Iterator[str]:
    """Yield a line for a circle of declarations or of Python modules, when there is one."""
    graph = {
        module: {other for _, other in imported(path)}
        for module, path in sources()
        if path.suffix != ".pyx"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"a circle of imports: {' <- '.join(error.args[1])}"


if __name__ == "__main__":
    sys.exit(main())
