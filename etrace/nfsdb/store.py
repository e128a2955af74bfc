# SPDX-License-Identifier: Apache-2.0
"""A place -> the open image of the database there, never a stale one; products into it.

When the image is missing, or the JSON that it was made of has changed since, it is made again from
the JSON before it is opened. When the trace is newer than the JSON, the database is refused: only
`cas parse` may write the JSON. An image without its JSON is a database too.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from libetrace.image import Image, ImageError, NewColumn, NewTable, Table, open_image, write_image

from etrace.errors import EtraceError
from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import DatabaseFiles, is_same, locate
from etrace.spec.database import PRODUCTS

ADDED_STRINGS = PRODUCTS[0]


def reopen(path: Path) -> Image:
    """Open an image as it is, after `rewrite`. EtraceError."""
    try:
        return open_image(path)
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error


def _is_fresh(image: Image, files: DatabaseFiles) -> bool:
    """Tell whether the image was made of the JSON files that are there; alone it is."""
    if not files.json.exists():
        return True
    remembered = image.attributes.get("sources")
    if not isinstance(remembered, Mapping):
        return False
    return all(is_same(path, remembered.get(name)) for name, path in files.sources.items())


def _open_fresh(files: DatabaseFiles) -> Image | None:
    """Return the image of a database, None when it has to be made."""
    if not files.image.exists():
        return None
    try:
        image = open_image(files.image)
    except ImageError as error:
        if files.json.exists():
            return None
        raise EtraceError(error.message, error.hint) from error
    return image if _is_fresh(image, files) else None


def open_database(where: Path | None = None) -> Image:
    """Open the database in a directory, of an image or of a `.nfsdb.json`, made again when stale.

    Without `where` it is the one in $DB_DIR, else in the current directory. EtraceError when there
    is none, when it is damaged or cannot be made.
    """
    files = locate(where)
    image = _open_fresh(files)
    if image is not None:
        return image
    if not files.json.exists():
        raise EtraceError(
            f"{files.image.parent}: no database",
            "make one: cas parse; or name its directory: --dbdir DIR, or DB_DIR=DIR",
        )
    build_image(files)
    return reopen(files.image)


# ---- products ----


def _again(table: Table) -> NewTable:
    columns = [
        NewColumn(name, info.dtype, table.columns[name], info.unit, info.meaning)
        for name, info in table.infos.items()
    ]
    return NewTable(table.name, table.n_rows, columns)


def rewrite(
    image: Image, tables: Sequence[NewTable], attributes: Mapping[str, Any] | None = None
) -> None:
    """Write the file of an image anew with `tables` added or replaced, `attributes` likewise.

    All else is passed through. The new file takes the old one's name when it is whole; `image`
    still shows the old one: open it again. OSError.
    """
    kept = {name: _again(table) for name, table in image.tables.items()}
    kept |= {table.name: table for table in tables}
    write_image(image.path, {**image.attributes, **(attributes or {})}, list(kept.values()))


class StringTable:
    """Numbers for strings: rows of `strings`, else of `added_strings`, which grows.

    Its table has to be written with the tables that use the numbers.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._known: dict[bytes, int] = {}
        added = image.tables.get(ADDED_STRINGS.name)
        n_added = 0 if added is None else added.n_rows
        self._added = [image.string(image.n_strings + row) for row in range(n_added)]
        for row, text in enumerate(self._added, image.n_strings):
            self._known[text] = row

    def number(self, text: bytes) -> int:
        """Return the number of a string; what the image lacks is added."""
        number = self._known.get(text)
        if number is None:
            number = self._image.find_string(text)
            if number < 0:
                number = self._image.n_strings + len(self._added)
                self._added.append(text)
            self._known[text] = number
        return number

    def table(self) -> NewTable:
        """Return the table `added_strings`."""
        start = array("Q", accumulate(map(len, self._added), initial=0))
        data = (start, b"".join(self._added))
        columns = [
            NewColumn(c.name, c.dtype, content, c.unit, c.meaning)
            for c, content in zip(ADDED_STRINGS.columns, data, strict=True)
        ]
        return NewTable(ADDED_STRINGS.name, len(self._added), columns)
