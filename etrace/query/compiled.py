# SPDX-License-Identifier: Apache-2.0
"""Files that the build compiled, and the compilations."""

from __future__ import annotations

from collections.abc import Iterable

from libetrace.image import Image

from etrace.query import chosen
from etrace.query.chosen import EVERYTHING, Given
from etrace.query.kinds import product


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

    Paths choose those that compiled the file or made it, filters those whose sources they hold
    for, programs, processes and command filters those of their executions.
    """
    table = product(image, "compilations", "compilations")
    rows: Iterable[int] = range(table.n_rows)
    if given.chooses_executions:
        running = set(chosen.executions(image, given.of_executions()))
        rows = [row for row in rows if table["execution"][row] in running]
    if given.paths is not None:
        wanted = _meant(image, given.paths)
        rows = [r for r in rows if not wanted.isdisjoint(sources(image, r) + objects(image, r))]
    if given.filters:
        passed = set(chosen.paths(image, chosen.opens(image, Given(filters=given.filters))))
        rows = [row for row in rows if not passed.isdisjoint(sources(image, row))]
    return list(rows)


def _meant(image: Image, paths: Iterable[bytes]) -> set[bytes]:
    return {path for text in paths for path in chosen.candidates(image, text)}


def compiled(image: Image, given: Given = EVERYTHING) -> list[bytes]:
    """Return the paths of compiled files, each once, in order of bytes.

    Of a compilation of several files only those that were asked for, if any was.
    """
    meant = _meant(image, given.paths or ())
    found: set[bytes] = set()
    for row in compilations(image, given):
        own = set(sources(image, row))
        found |= own & meant or own
    return sorted(found)
