# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json` -> the columns of a database image.

Reads what `etrace_parser` writes and what the ancestor wrote (docs/nfsdb-json.md, seed 001): keys that
are missing there (`i`, `c`, `o`, `u`, `!`) count as empty. Strings come out as bytes, sorted.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etrace.errors import EtraceError
from etrace.nfsdb.schema import NONE

Entry = Mapping[str, Any]
#: dtype of schema.py -> type code of array
CODES = {"<u8": "Q", "<i8": "q", "<u4": "I", "<i4": "i", "<i2": "h", "|u1": "B"}
TYPE_BITS = 0x7C  # exists and the type, of a mode


class Interner:
    """Strings -> provisional ids in order of appearance; `sorted()` gives the final ones."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids))

    def sorted(self) -> tuple[list[bytes], list[int]]:
        """Return the strings as bytes in their order, and the final id of each provisional one."""
        raw = [os.fsencode(text) for text in self._ids]
        order = sorted(range(len(raw)), key=raw.__getitem__)
        final = [0] * len(raw)
        for new, old in enumerate(order):
            final[old] = new
        return [raw[old] for old in order], final


@dataclass(slots=True)
class Columns:
    """Columns under construction, by table and name."""

    arrays: dict[str, dict[str, array[int]]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)


def read_entries(path: Path) -> list[Entry]:
    """Return the entries of a JSON database; EtraceError says what is wrong with it."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", "make it with etrace_parser") from error
    except ValueError as error:
        raise EtraceError(f"{path}: {error}", "make it again with etrace_parser") from error
    if not isinstance(raw, list) or not all(isinstance(entry, dict) for entry in raw):
        raise EtraceError(f"{path}: not an array of executions", "make it with etrace_parser")
    for number, entry in enumerate(raw):
        if missing := [key for key in ("p", "x") if not isinstance(entry.get(key), int)]:
            raise EtraceError(f"{path}: entry {number} lacks {missing[0]!r}", "see docs/nfsdb-json.md")
    return sorted(raw, key=lambda entry: (entry["p"], entry["x"]))


def rows_by_key(entries: Iterable[Entry]) -> dict[tuple[int, int], int]:
    """Return the row of each (upid, index)."""
    return {(entry["p"], entry["x"]): row for row, entry in enumerate(entries)}
