# SPDX-License-Identifier: Apache-2.0
"""A compile_commands.json that is there, and new entries -> one database.

To append keeps all that is there; to update drops what is there about files that have new entries.
Entries of others are kept as they are, with keys that this program does not know.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from etrace.errors import EtraceError
from etrace.export.compile_commands import Entry


class Merge(enum.Enum):
    """What becomes of the entries that are there."""

    APPEND = "append"
    UPDATE = "update"


def merged(path: Path, found: Iterable[Entry], merge: Merge) -> list[Entry]:
    """Return the entries of a file and then new ones, identical ones once.

    A file that is missing or empty has none. EtraceError when it is no compilation database.
    """
    new = list(found)
    old = read(path)
    if merge is Merge.UPDATE:
        again = set(map(_file, new))
        old = [entry for entry in old if _file(entry) not in again]
    unique = {json.dumps(entry, sort_keys=True): entry for entry in [*old, *new]}
    return list(unique.values())


def read(path: Path) -> list[Entry]:
    """Read a compilation database. EtraceError names what is wrong."""
    hint = "give another file with -o, or leave --append and --update out"
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    if not text.strip():
        return []
    try:
        raw: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EtraceError(f"{path}: not JSON: {error}", hint) from error
    if not isinstance(raw, list):
        raise EtraceError(f"{path}: not an array of entries", hint)
    for number, entry in enumerate(raw):
        if not (isinstance(entry, dict) and _has_texts(entry)):
            raise EtraceError(f"{path}: entry {number} has no `directory` and `file`", hint)
    return raw


def _has_texts(entry: Entry) -> bool:
    return all(isinstance(entry.get(key), str) for key in ("directory", "file"))


def _file(entry: Entry) -> str:
    return normpath(join(entry["directory"], entry["file"]))
