# SPDX-License-Identifier: Apache-2.0
"""An image -> the symbolic links that the build made."""

from __future__ import annotations

import bisect
import posixpath
import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from libetrace.image.file import Image

NONE = -1
RENAMED, LINKED, SYMLINKED, GONE, BEGUN, EXCHANGED = 2, 3, 4, 5, 6, 7  # kinds of changes
_MOVES = re.compile(b"[\x02\x03\x07]")
#: (path, execution, target, time, end in ns) of each link, as columns
Links = tuple["array[int]", "array[int]", "array[int]", "array[int]", "array[int]"]


class _Link(NamedTuple):
    path: int
    text: int  # string
    execution: int
    time: int


def find_links(image: Image) -> Links:
    """Return the symbolic links that were made: `path` stands for `target`, rows of `paths`.

    A target is looked for by its text, from the directory of the link. It is -1 when nothing
    opened, wrote or executed it. A link that is renamed, linked or exchanged is another link with
    the same text. Before `end` the name was given to nothing else, NONE if never.
    """
    columns: Links = (array("I"), array("I"), array("q"), array("q"), array("q"))
    if "changes" in image.tables and SYMLINKED in bytes(image["changes"]["kind"]):
        for row in _Names(image).links():
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return columns


class _Names:
    """What happened to the names of symbolic links."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.changes, self.opens = image["changes"], image["opens"]
        self.kinds = bytes(self.changes["kind"])
        self.ends_of: dict[int, list[tuple[int, int]]] = {}
        self.moves: dict[
            int, list[tuple[int, int]]
        ] = {}  # (time, change) by string of the old name
        for found in _MOVES.finditer(self.kinds):
            row = found.start()
            move = self.changes["time_ns"][row], row
            self.moves.setdefault(self.changes["name"][row], []).append(move)
        for moves in self.moves.values():
            moves.sort()

    def links(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield the columns of each link."""
        waiting = list(self._made())
        while waiting:
            link = waiting.pop()
            ends = self._ends(link.path)
            at = bisect.bisect_left(ends, (link.time + 1, 0))
            end, kind = ends[at] if at < len(ends) else (NONE, BEGUN)
            waiting += self._moved(link, end, kind)
            target = find_target(self.image, link.path, link.text)
            if target != link.path:
                yield link.path, link.execution, target, link.time, end

    def _made(self) -> Iterator[_Link]:
        at = self.kinds.find(SYMLINKED)
        while at >= 0:
            opened = self.changes["open"][at]
            path, execution = self.opens["path"][opened], self.opens["execution"][opened]
            yield _Link(path, self.changes["name"][at], execution, self.changes["time_ns"][at])
            at = self.kinds.find(SYMLINKED, at + 1)

    def _ends(self, path: int) -> list[tuple[int, int]]:
        """Return (time, kind) of what gave a name to something else, in order of time."""
        if path not in self.ends_of:
            opens = self.image["path_opens"]["open"]
            found = []
            for i in self.image["paths"].span("opens.start", path):
                at = bisect.bisect_left(self.changes["open"], opens[i])
                while at < len(self.kinds) and self.changes["open"][at] == opens[i]:
                    if self.kinds[at] != BEGUN:
                        found.append((self.changes["time_ns"][at], self.kinds[at]))
                    at += 1
            self.ends_of[path] = sorted(found)
        return self.ends_of[path]

    def _moved(self, link: _Link, end: int, kind: int) -> Iterator[_Link]:
        """Yield the links of other names that a link became before its name was another file's."""
        moves = self.moves.get(self.image["paths"]["string"][link.path], [])
        for time, row in moves[bisect.bisect_right(moves, (link.time + 1, -1)) :]:
            is_last = end != NONE and time >= end
            if not is_last and self.kinds[row] != LINKED:
                continue
            if is_last and self.kinds[row] != {GONE: RENAMED, EXCHANGED: EXCHANGED}.get(kind):
                return
            opened = self.changes["open"][row]
            path, execution = self.opens["path"][opened], self.opens["execution"][opened]
            yield _Link(path, link.text, execution, time)
            if is_last:
                return


def find_target(image: Image, path: int, text: int) -> int:
    """Return the row of `paths` that a link leads to, -1 when nothing used it.

    `text` is the string of the link, `path` the row of its own name.
    """
    if text < 0:
        return -1
    here = posixpath.dirname(image.path_string(path))
    return image.find_path(posixpath.normpath(posixpath.join(here, image.string(text))))
