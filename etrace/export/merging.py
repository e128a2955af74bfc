# SPDX-License-Identifier: Apache-2.0
"""A compile_commands.json that is there, and new entries -> one database.

To append keeps all that is there; to update drops what is there about files that have new entries.
Entries of others are kept unchanged, with keys that this program does not know.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from libetrace.core.regular_file import read_regular

from etrace.errors import EtraceError
from etrace.export.compile_commands import Entry


class Merge(enum.Enum):
    """What becomes of the entries that are there."""

    APPEND = "append"
    UPDATE = "update"


#: of a compilation database that is there
MAX_BYTES = 512 << 20
HINT = "give another file with -o, or leave --append and --update out"


@contextlib.contextmanager
def alone(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Let no other program merge into a file of this directory; `on_wait` when one does so.

    Two that read the same old entries would lose those of one of them. A directory that cannot be
    locked (NFS without locks) is not.
    """
    if path.exists() and not path.is_file():
        raise EtraceError(f"{path}: not a regular file, it has no entries to keep", HINT)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def merged(path: Path, found: Iterable[Entry], merge: Merge) -> list[Entry]:
    """Return the entries of a file and then new ones, identical ones once.

    A file that is missing or empty has none. EtraceError when it is not a compilation database.
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
    try:
        text = read_regular(os.fsencode(path), MAX_BYTES, is_text=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EtraceError(f"{path}: cannot keep its entries: {error.strerror}", HINT) from error
    if not text.strip():
        return []
    try:
        raw: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EtraceError(f"{path}: not JSON: {error}", HINT) from error
    if not isinstance(raw, list):
        raise EtraceError(f"{path}: not an array of entries", HINT)
    for number, entry in enumerate(raw):
        if not (isinstance(entry, dict) and _has_texts(entry)):
            raise EtraceError(f"{path}: entry {number} has no `directory` and `file`", HINT)
    return raw


def _has_texts(entry: Entry) -> bool:
    return all(isinstance(entry.get(key), str) for key in ("directory", "file"))


def _file(entry: Entry) -> str:
    return normpath(join(entry["directory"], entry["file"]))
