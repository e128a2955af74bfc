# SPDX-License-Identifier: Apache-2.0
"""Files -> packages of rpm, read from `rpmdb.sqlite` (rpm 4.16 and later).

Each row of the table `Packages` has a header: lib/header.c of rpm, "RPM V4 Package format". The
older databases, Berkeley DB (`Packages`) and ndb (`Packages.db`), are named, but not read.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from urllib.parse import quote

from etrace.compilers.regular_file import is_regular
from etrace.origin.package import Folder, Package, Release, Report, names_of
from etrace.texts import text_of

PLACES = (b"/usr/lib/sysimage/rpm", b"/var/lib/rpm")
NAME = b"/rpmdb.sqlite"
UNREAD = {b"/Packages": "Berkeley DB", b"/Packages.db": "ndb"}
MAX_HEADER = 32 << 20
#: bytes of all packages for each byte of the file
MAX_TIMES = 2
#: tags of rpm (include/rpm/rpmtag.h)
TAGS = {
    1000: "name", 1001: "version", 1002: "release", 1003: "epoch", 1011: "vendor",
    1014: "licence", 1022: "architecture", 1116: "indexes", 1117: "basenames", 1118: "folders",
}  # fmt: skip
INT32, STRING, STRINGS, TRANSLATED = 4, 6, 8, 9
Value = list[bytes] | list[int]


class Rpm:
    """The packages of one root directory; problems are reported once, in words."""

    def __init__(self, folder: Folder, release: Release, report: Report) -> None:
        self._folder, self._release, self._report = folder, release, report

    @property
    def is_there(self) -> bool:
        """Whether rpm has a database, of any kind."""
        return any(
            self._folder.is_there(place + name) for place in PLACES for name in (NAME, *UNREAD)
        )

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, Package]:
        """Return the packages of those paths that a header names."""
        merged = self._folder.merged()
        wanted = {name: path for path in paths for name in names_of(path, merged)}
        last = {path.rpartition(b"/")[2] for path in wanted}
        found: dict[bytes, Package] = {}
        for tags in self._headers():
            own = [wanted[path] for path in _files(tags, last) if path in wanted]
            if own:
                found |= dict.fromkeys(own, self._package(tags))
        return found

    def _headers(self) -> Iterator[Mapping[str, Value]]:
        for place in PLACES:
            path = self._folder.at(place + NAME)
            if is_regular(path):
                yield from self._of_file(path)
                return
        for place in PLACES:
            for name, kind in UNREAD.items():
                if self._folder.is_there(place + name):
                    where = os.fsdecode(self._folder.at(place + name))
                    self._report(
                        f"{where}: a database of rpm as {kind}, which etrace does not read"
                    )
                    return

    def _of_file(self, path: bytes) -> Iterator[Mapping[str, Value]]:
        shown, n_damaged = os.fsdecode(path), 0
        try:
            if os.stat(path + b"-wal").st_size:  # noqa: PTH116  bytes
                self._report(f"{shown}-wal: what rpm did last is not read")
        except OSError:
            pass
        try:
            # immutable: no lock and no file of SQLite's own beside it
            uri = f"file:{quote(path)}?mode=ro&immutable=1"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")
                kinds = "SELECT type FROM sqlite_master WHERE name = 'Packages' COLLATE NOCASE"
                if connection.execute(kinds).fetchall() != [("table",)]:
                    raise sqlite3.DatabaseError("it has no table of packages")
                kinds = "SELECT count(*) FROM pragma_table_xinfo('Packages') WHERE hidden"
                if connection.execute(kinds).fetchone() != (0,):
                    raise sqlite3.DatabaseError("its table of packages computes columns")
                # in the order of the table: to sort is to copy all that they hold
                query = "SELECT blob FROM Packages WHERE length(blob) < ?"
                left = MAX_TIMES * os.stat(path).st_size + MAX_HEADER  # noqa: PTH116  bytes
                for (blob,) in connection.execute(query, (MAX_HEADER,)):
                    left -= len(blob or b"")
                    if left < 0:  # a table may compute what it does not hold
                        raise sqlite3.DatabaseError("its packages are larger than the file")
                    tags = read_header(blob) if isinstance(blob, bytes) else None
                    if tags is None:
                        n_damaged += 1
                    else:
                        yield tags
        except sqlite3.Error as error:
            self._report(f"{shown}: {error}")
        if n_damaged:
            self._report(f"{shown}: {n_damaged} packages are damaged and left out")

    def _package(self, tags: Mapping[str, Value]) -> Package:
        version = "-".join(filter(None, (_first(tags, "version"), _first(tags, "release"))))
        return Package(
            "rpm", _first(tags, "name"), version, _first(tags, "architecture"),
            self._release.name, _first(tags, "vendor"), _first(tags, "licence"),
            self._release.qualifier, _first(tags, "epoch"),
        )  # fmt: skip


def _first(tags: Mapping[str, Value], name: str) -> str:
    value = tags.get(name) or [b""]
    return text_of(value[0]) if isinstance(value[0], bytes) else str(value[0])


def _files(tags: Mapping[str, Value], last: set[bytes]) -> Iterator[bytes]:
    """Yield the paths of a header whose last part is wanted."""
    names, indexes, folders = (tags.get(key, []) for key in ("basenames", "indexes", "folders"))
    for name, index in zip(names, indexes, strict=False):
        if name in last and isinstance(index, int) and index < len(folders):
            folder = folders[index]
            if isinstance(folder, bytes) and isinstance(name, bytes):
                yield folder + name


def read_header(blob: bytes) -> Mapping[str, Value] | None:
    """Return the wanted tags of a header; None when it is damaged."""
    try:
        n_entries, n_bytes = struct.unpack_from(">II", blob)
        begin = 8 + 16 * n_entries
        if begin + n_bytes > len(blob):
            return None
        store, found = blob[begin : begin + n_bytes], dict[str, Value]()
        for tag, kind, offset, count in struct.iter_unpack(">IIII", blob[8:begin]):
            if tag in TAGS and count and TAGS[tag] not in found:
                found[TAGS[tag]] = _value(store, kind, offset, count)
    except (struct.error, ValueError, IndexError):
        return None
    return found if "name" in found else None


def _value(store: bytes, kind: int, offset: int, count: int) -> Value:
    if kind == INT32:
        return list(struct.unpack_from(f">{count}I", store, offset))
    if kind not in (STRING, STRINGS, TRANSLATED) or offset > len(store):
        raise ValueError(kind)
    parts = store[offset:].split(b"\0", count)
    if len(parts) <= count:
        raise ValueError(count)
    return parts[:count]
