# SPDX-License-Identifier: Apache-2.0
"""Opens an image, and writes it again with tables added: products, response files.

`X.rsp.json` has the contents of response files: a list of [upid, absolute path, content], in which
bytes that are not UTF-8 are written by surrogateescape.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_json
from libetrace.image.columns import Columns
from libetrace.image.file import Image, NewTable, new_table, open_image, write_image
from libetrace.image.header import SCHEMA, ImageError
from libetrace.image.string_lookup import Lookup

from etrace.errors import EtraceError
from etrace.nfsdb import marks

ADDED_STRINGS = "added_strings"
#: `X.rsp` has 512 MB at most, and JSON escapes every byte
MAX_BYTES = 3 << 30


def check_rows(image: Image) -> None:
    """Compare every row number in an image with its table. EtraceError."""
    try:
        Columns(image)
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error


def reopen(path: Path, *, is_checked: bool = True) -> Image:
    """Open an image, also after `rewrite`.

    One scan of all columns (1 ms for 40 MB) makes sure that every row number lies inside its table.
    Without `is_checked` only the lengths of columns are checked. EtraceError.
    """
    try:
        image = open_image(path)
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error
    if is_checked:
        check_rows(image)
    return image


def rewrite(
    image: Image,
    tables: Sequence[NewTable],
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write the file of an image again with `tables` and `attributes` added or replaced.

    The rest is copied. The new file replaces the old one when it is whole; `image` still shows the
    old one, so open it again. EtraceError when another process has made the image again meanwhile,
    because row numbers in `tables` are those of the old one. OSError.
    """
    if image.path.stat().st_ino != image.inode:
        raise EtraceError(f"{image.path} changed meanwhile", "run the command again")
    kept = {
        name: new_table(name, [table.columns[column] for column in SCHEMA[name].columns])
        for name, table in image.tables.items()
    }
    kept |= {table.name: table for table in tables}
    is_own = marks.is_marked(image.path)
    write_image(image.path, {**image.attributes, **(attributes or {})}, list(kept.values()))
    if is_own:
        marks.mark(image.path)


class StringTable:
    """Numbers for strings: rows of `strings`, else of `added_strings`, which grows.

    Its table has to be written with the tables that use the numbers.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._known: dict[bytes, int] = {}
        self._lookup = Lookup(image["strings"]["start"], image["strings"]["bytes"])
        added = image.tables.get(ADDED_STRINGS)
        n_added = 0 if added is None else added.n_rows
        self._added = [image.string(image.n_strings + row) for row in range(n_added)]
        for row, text in enumerate(self._added, image.n_strings):
            self._known[text] = row

    def number(self, text: bytes) -> int:
        """Return the number of a string; add it if the image lacks it."""
        number = self._known.get(text)
        if number is None:
            number = self._lookup.find(text)
            if number < 0:
                number = self._image.n_strings + len(self._added)
                self._added.append(text)
            self._known[text] = number
        return number

    def table(self) -> NewTable:
        """Return the table `added_strings`."""
        start = array("Q", accumulate(map(len, self._added), initial=0))
        return new_table(ADDED_STRINGS, (start, b"".join(self._added)))


def read_responses(path: Path) -> list[tuple[int, bytes, bytes]]:
    """Return (upid, path, content) of each file. EtraceError."""
    hint = "make it again: cas parse --force"
    try:
        raw: Any = read_json(path, MAX_BYTES)
        array("q", [int(upid) for upid, _, _ in raw])  # values that fit no column
        return [(int(upid), _bytes(name), _bytes(content)) for upid, name, content in raw]
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", hint) from error
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise EtraceError(f"{path}: not a list of response files: {error}", hint) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def add_responses(path: Path, found: Sequence[tuple[int, bytes, bytes]]) -> None:
    """Add the table of (upid, path, content) to an image. EtraceError, OSError."""
    image = reopen(path)
    strings = StringTable(image)
    data = (
        array("q", [upid for upid, _, _ in found]),
        array("I", [strings.number(path) for _, path, _ in found]),
        array("I", [strings.number(content) for _, _, content in found]),
    )
    rewrite(image, [strings.table(), new_table("response_files", data)])
