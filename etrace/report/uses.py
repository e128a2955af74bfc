# SPDX-License-Identifier: Apache-2.0
"""Opens and inherited descriptors -> which command reads and writes which file.

The page has every file but those of tools, directories and devices. Lists of files are sorted,
and their differences are stored as numbers of 7 bits a byte (LEB128): mostly one byte a use.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from libetrace.depend.path_opens import OwnedPaths, owned_paths
from libetrace.image.file import Image

from etrace.advise.build import Build
from etrace.query.rows.commands import Commands
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.report.pack import Pack

#: uses on the page; reads of the most read files are left out beyond it, and the page says so
MAX_USES = 4_000_000
HIDDEN = frozenset((FileKind.TOOL, FileKind.DIRECTORY, FileKind.DEVICE))
KINDS = tuple(FileKind)
READ, WRITE = 0, 1


class Uses:
    """Rows of `paths` that each command read and wrote, sorted."""

    def __init__(self, commands: Commands) -> None:
        self.kinds = FileKinds(commands.image)
        found = [self._paths(commands, left_out) for left_out in (WRITE, READ)]
        paths = set().union(*(each.path for each in found))
        self._kept = {path for path in paths if self.kinds.of(path) not in HIDDEN}
        self.read, self.written = map(self._lists, found)

    def _paths(self, commands: Commands, left_out: int) -> OwnedPaths:
        tables = [commands.image["opens"], commands.image["inherited"]]
        return owned_paths(tables, commands.owners, len(commands.rows), left_out)

    def _lists(self, found: OwnedPaths) -> list[list[int]]:
        kept, path = self._kept, found.path
        return [[p for p in path[a:b] if p in kept] for a, b in pairwise(found.start)]

    def limit(self) -> int:
        """Leave out reads of the most read files beyond MAX_USES; return how many files."""
        n_uses = sum(map(len, self.read)) + sum(map(len, self.written))
        if n_uses <= MAX_USES:
            return 0
        dropped = set()
        for path, n_readers in Counter(p for own in self.read for p in own).most_common():
            if n_uses <= MAX_USES:
                break
            dropped.add(path)
            n_uses -= n_readers
        self.read = [[path for path in own if path not in dropped] for own in self.read]
        return len(dropped)


def varints(lists: Iterable[Iterable[int]]) -> tuple[array[int], bytes]:
    """Return where each sorted list starts, and the differences of its numbers as LEB128."""
    start, out = array("I", [0]), bytearray()
    for numbers in lists:
        last = 0
        for number in numbers:
            difference, last = number - last, number
            while difference > 0x7F:
                out.append(difference & 0x7F | 0x80)
                difference >>= 7
            out.append(difference)
        start.append(len(out))
    return start, bytes(out)


def add_uses(pack: Pack, image: Image, uses: Uses) -> dict[int, int]:
    """Add `file.*`, `reads` and `writes`; return the number of each row of `paths` on the page."""
    if n_dropped := uses.limit():
        pack.meta["dropped_files"] = n_dropped
    paths = sorted(set().union(*uses.read, *uses.written))
    number = {path: i for i, path in enumerate(paths)}
    pack.meta["file_kinds"] = [kind.value for kind in KINDS]
    pack.add("file.path", "I", (pack.text(image.path_string(path)) for path in paths))
    pack.add("file.size", "d", map(uses.kinds.size_of, paths))
    pack.add("file.kind", "B", (KINDS.index(uses.kinds.of(path)) for path in paths))
    for name, lists in (("reads", uses.read), ("writes", uses.written)):
        start, packed = varints(map(number.__getitem__, own) for own in lists)
        pack.add(f"{name}.start", "I", start)
        pack.add_bytes(name, packed)
    return number


class Contents(NamedTuple):
    """What a part of the page makes its data of."""

    image: Image
    build: Build
    commands: Commands
    uses: Uses
    number: dict[int, int]  #: number on the page of each row of `paths`
