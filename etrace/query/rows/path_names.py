# SPDX-License-Identifier: Apache-2.0
"""Paths -> their renames, hard links and symbolic links (table `changes`), and directories."""

from __future__ import annotations

import bisect
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from libetrace.depend.symlinks import find_target
from libetrace.image.file import Image

from etrace.spec.database import file_type

EMPTIED, RENAMED, LINKED, SYMLINKED, GONE, BEGUN, EXCHANGED = range(1, 8)


class Change(NamedTuple):
    """What happened to a path at a time; `name` is a row of `strings`, -1 for none."""

    time_ns: int
    kind: int
    name: int
    execution: int


class Names:
    """Changes of names in one image."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @cached_property
    def changes(self) -> Mapping[int, Sequence[Change]]:
        """Row of `paths` -> its changes in order of time, first uses left out."""
        found: defaultdict[int, list[Change]] = defaultdict(list)
        if "changes" in self._image.tables:
            table, opens = self._image["changes"], self._image["opens"]
            columns = (table["open"], table["kind"], table["time_ns"], table["name"])
            for opened, kind, time_ns, name in zip(*columns, strict=True):
                if kind != BEGUN:
                    change = Change(time_ns, kind, name, opens["execution"][opened])
                    found[opens["path"][opened]].append(change)
        return {path: sorted(own, key=lambda change: change.time_ns) for path, own in found.items()}

    def target(self, path: int) -> int:
        """Return the target of a symbolic link, a row of `paths`; else the path itself.

        Through any number of links, and through renames of them (`ln -sf`).
        """
        seen: set[int] = set()
        while path not in seen:
            seen.add(path)
            text, own = self._link(path)
            target = find_target(self._image, own, text)
            if target < 0:
                return path
            path = target
        return path

    def _link(self, path: int) -> tuple[int, int]:
        """Return (text, name it was made with) of the symbolic link at a path, (-1, path) if none.

        What a rename or a hard link gave it came from the other name as it was then.
        """
        before: int | None = None
        while (made := self._made(path, before)) and made.kind in (RENAMED, LINKED, EXCHANGED):
            path, before = self.named(made.name), made.time_ns - 1
        return (made.name, path) if made and made.kind == SYMLINKED else (-1, path)

    def _made(self, path: int, before: int | None) -> Change | None:
        """Return how a path came to be what it was at a time, or is."""
        own = self.changes.get(path, ())
        made = [c for c in own if c.kind != GONE and (before is None or c.time_ns <= before)]
        return made[-1] if made else None

    def named(self, string: int) -> int:
        """Return the row of `paths` of a string, -1 for none."""
        return self._image.find_path(self._image.string(string)) if string >= 0 else -1


def is_directory(image: Image, path: int) -> bool:
    """Return whether a row of `paths` is a directory, or is gone and held paths."""
    mode = image["paths"]["mode"][path]
    return file_type(mode) == stat.S_IFDIR if mode else holds_paths(image, path)


def holds_paths(image: Image, path: int) -> bool:
    """Return whether something was opened below a path: it follows, after longer names."""
    path_string, n_paths = image.path_string, image["paths"].n_rows
    name, at = path_string(path), path + 1
    below = name + b"/"
    if at == n_paths or not path_string(at).startswith(name):
        return False
    at = bisect.bisect_left(range(n_paths), below, lo=at, key=path_string)
    return at < n_paths and path_string(at).startswith(below)
