# SPDX-License-Identifier: Apache-2.0
"""`X.rsp.json`, the contents of response files -> the table `response_files` of the image.

A list of [upid, absolute path, content]; bytes that are not UTF-8 by surrogateescape.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_json as read_values
from libetrace.image.file import NewColumn, NewTable

from etrace.errors import EtraceError
from etrace.spec.database import PRODUCTS

TABLE = "response_files"
#: `X.rsp` has 512 MB at most, of which JSON escapes every byte
MAX_BYTES = 3 << 30
SPEC = next(table for table in PRODUCTS if table.name == TABLE)


def read_json(path: Path) -> list[tuple[int, bytes, bytes]]:
    """Return (upid, path, content) of each file. EtraceError."""
    hint = "make it again: cas parse --force"
    try:
        raw: Any = read_values(path, MAX_BYTES)
        array("q", [int(upid) for upid, _, _ in raw])  # values that fit no column
        return [(int(upid), _bytes(name), _bytes(content)) for upid, name, content in raw]
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", hint) from error
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise EtraceError(f"{path}: not a list of response files: {error}", hint) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def add_table(path: Path, found: Sequence[tuple[int, bytes, bytes]]) -> None:
    """Add the table of (upid, path, content) to an image. EtraceError, OSError."""
    from etrace.nfsdb.store import StringTable, reopen, rewrite  # noqa: PLC0415  they import build

    image = reopen(path)
    strings = StringTable(image)
    data = (
        array("q", [upid for upid, _, _ in found]),
        array("I", [strings.number(path) for _, path, _ in found]),
        array("I", [strings.number(content) for _, _, content in found]),
    )
    columns = [
        NewColumn(c.name, c.dtype, content, c.unit, c.meaning)
        for c, content in zip(SPEC.columns, data, strict=True)
    ]
    rewrite(image, [strings.table(), NewTable(TABLE, len(found), columns)])
