# SPDX-License-Identifier: Apache-2.0
"""Opens and inherited descriptors -> which command reads and writes which file.

The page has every file but those of tools, directories and devices. Lists of files are sorted,
and their differences are stored as numbers of 7 bits a byte (LEB128): mostly one byte a use.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from libetrace.image.file import Image

from etrace.query.classes.file_kinds import FileKind, FileKinds
from etrace.report.commands import Commands
from etrace.report.pack import Pack
from etrace.spec.database import ACCESS, NONE

#: uses on the page; reads of the most read files are left out beyond it, and the page says so
MAX_USES = 4_000_000
HIDDEN = frozenset((FileKind.TOOL, FileKind.DIRECTORY, FileKind.DEVICE))
KINDS = tuple(FileKind)
READ, WRITE = 0, 1


class Uses:
    """Sets of rows of `paths` that each command read and wrote."""

    def __init__(self, commands: Commands) -> None:
        self._commands, self._kinds = commands, FileKinds(commands.image)
        self._is_kept: dict[int, bool] = {}
        self.read: list[set[int]] = [set() for _ in commands.rows]
        self.written: list[set[int]] = [set() for _ in commands.rows]
        for table in ("opens", "inherited"):
            self._take(commands.image, table)

    def _take(self, image: Image, name: str) -> None:
        table = image[name]
        for path, execution, mode in zip(
            table["path"], table["execution"], table["mode"], strict=True
        ):
            command = self._commands.of(execution)
            if command == NONE or not self._kept(path):
                continue
            access = mode & ACCESS
            if access != WRITE:
                self.read[command].add(path)
            if access != READ:
                self.written[command].add(path)

    def _kept(self, path: int) -> bool:
        if path not in self._is_kept:
            self._is_kept[path] = self._kinds.of(path) not in HIDDEN
        return self._is_kept[path]

    def kind(self, path: int) -> FileKind:
        """Return the kind of a row of `paths`."""
        return self._kinds.of(path)

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
        for own in self.read:
            own.difference_update(dropped)
        return len(dropped)


def varints(lists: Iterable[Iterable[int]]) -> tuple[array[int], bytes]:
    """Return where each list starts, and the differences of its sorted numbers as LEB128."""
    start, out = array("I", [0]), bytearray()
    for numbers in lists:
        last = 0
        for number in sorted(numbers):
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
    sizes = image["paths"]["size"]
    pack.meta["file_kinds"] = [kind.value for kind in KINDS]
    pack.add("file.path", "I", (pack.text(image.path_string(path)) for path in paths))
    pack.add("file.size", "d", (max(0, sizes[path]) for path in paths))
    pack.add("file.kind", "B", (KINDS.index(uses.kind(path)) for path in paths))
    for name, sets in (("reads", uses.read), ("writes", uses.written)):
        start, packed = varints([number[path] for path in own] for own in sets)
        pack.add(f"{name}.start", "I", start)
        pack.add_bytes(name, packed)
    return number
