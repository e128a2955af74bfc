# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json`, environment and mounts -> the tables of a database image.

Reads the output of `etrace_parser`, the keys that `cas pp` adds (n, m, d, l, t), and the JSON of
Samsung CAS (docs/nfsdb-json.md). libetrace.convert.importer does the work, column by column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from libetrace.convert.importer import Importer, JsonError
from libetrace.core.regular_file import open_regular, read_head
from libetrace.image.file import NewTable, new_tables
from libetrace.trace.source import Source

from etrace.errors import EtraceError
from etrace.nfsdb.files import DatabaseFiles

HINT = "make it again: cas parse --force"
FOREIGN_HINT = "name a .nfsdb.json that etrace_parser or cas parse has written"
FOREIGN = rb'\s*(?:\[\s*)?\{\s*"[^"]{2}'
HEAD_BYTES = 1 << 12


def _open(path: Path) -> Source:
    with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
        return Source.from_fd(stream.fileno())


def is_foreign(path: Path) -> bool:
    """Return whether a file is JSON of another tool: entries of a database have one-letter keys."""
    try:
        return re.match(FOREIGN, read_head(path, HEAD_BYTES)) is not None
    except OSError:
        return False


def foreign(path: Path) -> EtraceError:
    """Return the error for JSON of another tool."""
    return EtraceError(f"{path}: JSON of another tool, not a database", FOREIGN_HINT)


def _read(path: Path, read: Callable[[Source], None]) -> None:
    try:
        read(_open(path))
    except JsonError as error:
        raise EtraceError(f"{path}: {error.message}", HINT) from error
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", HINT) from error


def read_tables(files: DatabaseFiles) -> tuple[list[NewTable], dict[str, Any]]:
    """Return the tables of a database from its JSON files; those beside it may be missing.

    The attributes hold the number of unknown keys, which were skipped, and whether some execution
    has the ends of its uses. A product has its tables when some execution has its key. EtraceError
    names the file, entry, byte and key of an error.
    """
    importer = Importer()
    try:
        _read(files.json, importer.read_entries)
    except EtraceError as error:
        if is_foreign(files.json):
            raise foreign(files.json) from error
        raise
    if files.env.exists():
        _read(files.env, importer.read_environment)
    if files.mounts.exists():
        _read(files.mounts, importer.read_mounts)
    return new_tables(importer.columns(), importer.products), importer.attributes
