# SPDX-License-Identifier: Apache-2.0
"""Executions that opened files, and how."""

from __future__ import annotations

from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.query.given import chosen
from etrace.query.given.chosen import EVERYTHING, Given

READ, WRITE = 1, 2
_BITS = (READ, WRITE, READ | WRITE, READ | WRITE)  # by the access bits of a mode


@dataclass(frozen=True, slots=True)
class Access:
    """One execution and one file: rows of `executions` and `paths`, READ, WRITE or both."""

    execution: int
    path: int
    bits: int

    @property
    def letters(self) -> str:
        """Return r, w or rw."""
        return ("", "r", "w", "rw")[self.bits]


def faccess(image: Image, given: Given = EVERYTHING) -> list[Access]:
    """Return accesses by file and execution; all original paths of a file count together."""
    table = image["opens"]
    found: dict[tuple[int, int], int] = {}
    for row in chosen.opens(image, given):
        key = (table["path"][row], table["execution"][row])
        found[key] = found.get(key, 0) | _BITS[table["mode"][row] & 3]
    return [Access(execution, path, bits) for (path, execution), bits in sorted(found.items())]
