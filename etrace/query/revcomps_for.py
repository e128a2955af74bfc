# SPDX-License-Identifier: Apache-2.0
"""Compiled files whose compilation read a file: which sources include this header.

A file belongs to the compilation that read it: the nearest among the execution that opened it and
those that started it, up to the first compilation (gcc for what its cc1 reads). What is read by no
compilation belongs to none.
"""

from __future__ import annotations

from collections.abc import Mapping

from libetrace.image.file import Image

from etrace.query.classes.kinds import Kinds
from etrace.query.compiled import sources
from etrace.query.given import chosen
from etrace.query.given.chosen import Given
from etrace.spec.database import NONE

WRITE_ONLY = 1


class Compilers:
    """Finds the compilation that an execution belongs to; each execution is walked from once."""

    def __init__(self, image: Image) -> None:
        self._compilations = Kinds(image).compilations
        self._parent = image["executions"]["parent"]
        self._known: dict[int, int] = {}

    def of(self, row: int) -> int:
        """Return a row of `compilations`, NONE when no compilation started this."""
        walked: list[int] = []
        while row != NONE and row not in self._known and len(walked) <= len(self._parent):
            walked.append(row)
            if row in self._compilations:
                self._known[row] = self._compilations[row]
                break
            row = self._parent[row]
        found = self._known.get(row, NONE)
        self._known.update(dict.fromkeys(walked, found))
        return found


def readers(image: Image, given: Given) -> Mapping[int, set[int]]:
    """Return each chosen path that was read -> rows of `compilations`, NONE for other readers."""
    opens, compilers = image["opens"], Compilers(image)
    found: dict[int, set[int]] = {}
    for row in chosen.opens(image, given):
        if opens["mode"][row] & 3 != WRITE_ONLY:
            compilation = compilers.of(opens["execution"][row])
            found.setdefault(opens["path"][row], set()).add(compilation)
    return found


def revcomps_map(image: Image, given: Given) -> Mapping[bytes, list[bytes]]:
    """Return each chosen file that was read -> compiled files, in order of bytes."""
    return {
        image.path_string(path): sorted(
            {source for row in rows - {NONE} for source in sources(image, row)}
        )
        for path, rows in sorted(readers(image, given).items())
    }


def revcomps_for(image: Image, given: Given) -> list[bytes]:
    """Return the compiled files of all chosen files together, in order of bytes."""
    return sorted({path for found in revcomps_map(image, given).values() for path in found})
