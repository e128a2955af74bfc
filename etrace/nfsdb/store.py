# SPDX-License-Identifier: Apache-2.0
"""A directory or file -> the open image of its database, never a stale one; adds products to it.

A missing image, or one that does not fit the JSON beside it, is made from the JSON before it is
opened. When the trace of the directory has changed since, the database is refused, because only
`cas parse` reads traces. A damaged image, another file or another schema is refused too: only `cas
cache` replaces such files. An image alone is a complete database.
"""

from __future__ import annotations

import contextlib
import errno
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from libetrace.image.columns import Columns
from libetrace.image.file import Image, NewColumn, NewTable, Table, open_image, write_image
from libetrace.image.freshness import is_older, is_same, restamped
from libetrace.image.header import ImageError
from libetrace.image.string_lookup import Lookup

from etrace.errors import EtraceError
from etrace.nfsdb.files import DatabaseFiles, locate
from etrace.spec.database import PRODUCTS

ADDED_STRINGS = PRODUCTS[0]


def check_rows(image: Image) -> None:
    """Compare every row number in an image with its table. EtraceError."""
    try:
        Columns(image)
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error


def reopen(path: Path, *, is_checked: bool = True) -> Image:
    """Open an image as it is, after `rewrite`.

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


def is_fresh(image: Image, files: DatabaseFiles) -> bool:
    """Tell whether the image fits the JSON files beside it; without JSON it is fresh."""
    if not files.json.exists():
        return True
    remembered = image.attributes.get("sources")
    if not isinstance(remembered, Mapping):
        return False
    return all(is_same(path, remembered.get(name)) for name, path in files.sources.items())


def _check_trace(image: Image, files: DatabaseFiles) -> None:
    """Refuse a database whose trace has been replaced."""
    if not files.trace.exists():
        return
    made = files.json if files.json.exists() else files.image
    known = image.attributes.get("traces") or {}
    named = [kept for name, kept in known.items() if Path(name).name == files.trace.name]
    if named and any(is_same(files.trace, kept) for kept in named):
        return
    if named or is_older(made, files.trace):
        raise EtraceError(
            f"{files.trace} has changed since the database was made from it",
            f"make it again: cas parse; to query the old database: --dbdir {made}",
        )


def _trace_again(files: DatabaseFiles, name: str, kept: Any) -> tuple[str, Any]:
    """Return a remembered trace; if it lies beside the image, with its present name and stamp."""
    is_here = Path(name).name == files.trace.name and files.trace.exists()
    if is_here and is_same(files.trace, kept):
        return str(files.trace.absolute()), restamped(files.trace, kept)
    return name, kept


def _settled(image: Image, files: DatabaseFiles) -> Image:
    """Let the image of a copied database remember the copies, so that they are read only once."""
    if not files.json.exists():
        return image
    sources, traces = image.attributes["sources"], image.attributes.get("traces") or {}
    wanted = {
        "sources": {
            name: restamped(path, sources.get(name)) for name, path in files.sources.items()
        },
        "traces": dict(_trace_again(files, name, kept) for name, kept in traces.items()),
    }
    if wanted == {"sources": sources, "traces": traces}:
        return image
    with contextlib.suppress(OSError, EtraceError):  # a read-only directory: try next time
        rewrite(image, [], wanted)
    return reopen(files.image)


def open_database(where: Path | None = None, *, is_checked: bool = True) -> Image:
    """Open the database of a directory, image or `.nfsdb.json`; make it again when stale.

    Without `where` it is the one in $DB_DIR, else in the current directory. EtraceError when it is
    missing, damaged or cannot be made, or when its trace has been replaced. `is_checked`: see
    `reopen`.
    """
    files = locate(where)
    is_directory = where is None or where.is_dir()
    for path in (files.image, *files.sources.values()):
        if path.exists() and not path.is_file():  # opening a pipe would block
            raise EtraceError(f"{path}: not a file", "move it away, then: cas parse")
    if not files.image.exists() and not files.json.exists():
        raise EtraceError(
            f"{files.image.parent}: no database",
            "make one: cas parse; or name its directory: --dbdir DIR, or DB_DIR=DIR",
        )
    if files.image.exists():
        image = reopen(files.image, is_checked=is_checked)
        if is_fresh(image, files):  # else the JSON may be that of another trace
            if is_directory:
                _check_trace(image, files)
            return _settled(image, files)
    refresh(files)
    image = reopen(files.image)
    if is_directory:
        _check_trace(image, files)
    return image


def _said(files: DatabaseFiles) -> Mapping[str, str]:
    """Return what the user set in a database before, nothing when its image cannot be read."""
    try:
        said = open_image(files.image).attributes.get("said")
    except (ImageError, OSError):
        return {}
    return said if isinstance(said, Mapping) else {}


def refresh(files: DatabaseFiles, said: Mapping[str, str] | None = None) -> None:
    """Make the image of a database again from its JSON; keep what the user set before.

    `said` adds to that: `version`, `source_root`. EtraceError, OSError.
    """
    from etrace.nfsdb.build import build_image  # noqa: PLC0415  slow to import, rarely needed

    try:
        build_image(files, said={**_said(files), **(said or {})})
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise EtraceError(
            f"{files.image}: cannot be made here: {error.strerror}",
            "copy the database to a directory of your own, or let its owner run: cas cache",
        ) from error


# ---- products ----


def _again(table: Table) -> NewTable:
    columns = [
        NewColumn(name, info.dtype, table.columns[name], info.unit, info.meaning)
        for name, info in table.infos.items()
    ]
    return NewTable(table.name, table.n_rows, columns)


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
        self._lookup = Lookup(image["strings"]["start"], image["strings"]["bytes"])
        added = image.tables.get(ADDED_STRINGS.name)
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
        data = (start, b"".join(self._added))
        columns = [
            NewColumn(c.name, c.dtype, content, c.unit, c.meaning)
            for c, content in zip(ADDED_STRINGS.columns, data, strict=True)
        ]
        return NewTable(ADDED_STRINGS.name, len(self._added), columns)
