# SPDX-License-Identifier: Apache-2.0
"""Files that the build compiled, and the compilations."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from libetrace.image.file import Image

from etrace.query.classes.kinds import product
from etrace.query.given import chosen
from etrace.query.given.chosen import EVERYTHING, Given
from etrace.query.given.targets import MAGIC, candidates


def sources(image: Image, row: int) -> list[bytes]:
    """Return the paths that a row of `compilations` compiled."""
    strings = image["compilation_files"]["string"]
    return [image.string(strings[i]) for i in image["compilations"].span("files.start", row)]


def objects(image: Image, row: int) -> list[bytes]:
    """Return the paths that a row of `compilations` made."""
    paths = image["compilation_objects"]["path"]
    return [image.path_string(paths[i]) for i in image["compilations"].span("objects.start", row)]


def compilations(image: Image, given: Given = EVERYTHING) -> list[int]:
    """Return rows of `compilations`, in order of execution.

    Paths select the compilations of a source or object. Filters select by the sources; programs,
    processes and command filters select by the execution.
    """
    table = product(image, "compilations", "compilations")
    rows: Iterable[int] = range(table.n_rows)
    if given.chooses_executions:
        running = set(chosen.executions(image, given.of_executions()))
        rows = [row for row in rows if table["execution"][row] in running]
    if given.paths is not None:
        wanted = meant(image, given.paths)
        rows = [r for r in rows if not wanted.isdisjoint(sources(image, r) + objects(image, r))]
    if given.filters:
        passed = set(chosen.paths(image, chosen.opens(image, Given(filters=given.filters))))
        rows = [row for row in rows if not passed.isdisjoint(sources(image, row))]
    return list(rows)


def meant(image: Image, names: Iterable[bytes]) -> set[bytes]:
    """Return the compiled files and objects that match a path, the end of a path, or a glob.

    They need not have been opened: on a hit, ccache does not open the source.
    """
    known, found = _all(image), set[bytes]()
    for name in names:
        found |= known.intersection(candidates(image, name)) or set(_ending(known, name))
    return found


def _all(image: Image) -> set[bytes]:
    rows = range(product(image, "compilations", "compilations").n_rows)
    return {path for row in rows for path in sources(image, row) + objects(image, row)}


def _ending(paths: Iterable[bytes], name: bytes) -> Iterable[bytes]:
    if MAGIC.isdisjoint(name):
        return (path for path in paths if path.endswith(b"/" + name.removeprefix(b"./")))
    return fnmatch.filter(paths, name if name.startswith(b"/") else b"*/" + name)


def compiled(image: Image, given: Given = EVERYTHING) -> list[bytes]:
    """Return the distinct paths of compiled files, sorted as bytes.

    When a selected compilation has several files, only the selected ones are returned, if any.
    """
    asked = meant(image, given.paths or ())
    found: set[bytes] = set()
    for row in compilations(image, given):
        own = set(sources(image, row))
        found |= own & asked or own
    return sorted(found)
