# SPDX-License-Identifier: Apache-2.0
"""Names that lead through symbolic links -> the files that they lead to.

A program may open `api.hpp` where that is a link to `real/h.h`: then the path of the open is that
of `real/h.h`, and `api.hpp` is what it asked for. The trace decides first: what a name that some
program asked for led to. Then the file system as it is now.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

from libetrace.image.file import Image
from libetrace.image.string_lookup import resolve_strings

from etrace.query.rows.path_names import SYMLINKED, Names

PARENT = b"/.."


class AskedNames:
    """The names that the programs of an image asked for."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @cached_property
    def _rows(self) -> memoryview:
        """Row of `paths` that each string names as an original path, -1 for none."""
        opens, paths = self._image["opens"], self._image["paths"]
        found = resolve_strings(
            paths["string"], opens["original"], opens["path"], self._image.n_strings
        )
        return memoryview(found)

    @cached_property
    def _normal(self) -> Mapping[bytes, int]:
        """Normal forms of names other than the path's own -> rows of `paths`."""
        string, own = self._image.string, self._image["paths"]["string"]
        directories = set(map(string, set(self._image["executions"]["cwd"])))
        pairs = (
            (normal, row)
            for text, row in enumerate(self._rows)
            if row >= 0 and own[row] != text and (normal := _normal(string(text), directories))
        )
        found: dict[bytes, int] = {}
        for name, row in pairs:
            found.setdefault(name, row)
        return found

    def find(self, name: bytes) -> int:
        """Return the row of the path that an absolute name led to, -1 when nobody asked for it."""
        string = self._image.find_string(name)
        if string >= 0 and self._rows[string] >= 0:
            return self._rows[string]
        return self._normal.get(os.path.normpath(name), -1)


def _normal(name: bytes, directories: set[bytes]) -> bytes:
    """Return a name without `.` and `..`; empty where `..` may leave a link.

    It leaves none in what a program asked for from its working directory.
    """
    if PARENT in name:
        above = name[: name.index(PARENT)]
        below = name[len(above) :].lstrip(b"./")
        if above not in directories or PARENT in b"/" + below:
            return b""
    return os.path.normpath(name)


@lru_cache(maxsize=1)  # of the names of one query
def _asked(image: Image) -> AskedNames:
    return AskedNames(image)


def find_through_links(image: Image, names: Iterable[bytes]) -> int:
    """Return the row of the file that one of some absolute names leads to, -1 when there is none.

    The names are as given: `..` after a link leaves the directory that the link leads to.
    """
    absolute = [name for name in names if name.startswith(b"/")]
    asked = (_asked(image).find(name) for name in absolute)
    now = (image.find_path(os.path.realpath(name)) for name in absolute)
    rows = (row for found in (asked, now) for row in found)
    return next((row for row in rows if row >= 0), -1)


def targets(image: Image, rows: Iterable[int]) -> dict[int, None]:
    """Return rows of `paths` and, after those that the build made as links, what they lead to."""
    links, found = Names(image), dict[int, None]()
    for row in rows:
        found[row] = None
        if _is_made_link(image, row):
            found[links.target(row)] = None
    return found


def _is_made_link(image: Image, row: int) -> bool:
    if "changes" not in image.tables:
        return False
    changed, kind = image["changes"]["open"], image["changes"]["kind"]
    for i in image["paths"].span("opens.start", row):
        opened = image["path_opens"]["open"][i]
        at = bisect_left(changed, opened)
        while at < len(changed) and changed[at] == opened:
            if kind[at] == SYMLINKED:
                return True
            at += 1
    return False
