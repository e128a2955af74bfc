# SPDX-License-Identifier: Apache-2.0
"""Two databases -> which commands of one build are commands of the other.

Names are normalised: without the source root and without made-up parts of the names of temporary
files (etrace/query/rows/temporary.py). First, commands match that are equal then. Then the same
commands match whose options differ: those of one name (`cc1 lvm.c`) in one directory, and those of
one name in directories that only one build has. SIMILAR commands are others in one place: of one
program, they wrote the same files, or ran in one directory. Equal keys match in the order of time.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from libetrace.image.file import Image

from etrace.query.facts import source_root
from etrace.query.rows.labels import Labels
from etrace.query.rows.temporary import WRITES, Temporaries
from etrace.spec.database import NONE

ROOT = b"$ROOT"
#: numbers of processes, pipes and sockets, which the kernel assigns
_NUMBERED = re.compile(rb"^(/proc/)\d+(?=/|$)|\b(pipe:|socket:)\[\d+\]$")


class Side:
    """One build, with names normalised: without the source root and temporary parts."""

    def __init__(
        self, image: Image, root: bytes | None = None, temporaries: Temporaries | None = None
    ) -> None:
        self.image = image
        self._temporaries = temporaries or Temporaries(image)
        self._root = source_root(image).rstrip(b"/") if root is None else root
        self._labels = Labels(image)
        self._strings = _Strings(self)
        self._keys: dict[int, Hashable] = {}

    def _placed(self, text: bytes) -> bytes:
        """Return a name or argument independent of the source root."""
        if not self._root:
            return text
        return re.sub(re.escape(self._root) + rb"(?=/|$)", lambda _: ROOT, text)

    def normal(self, text: bytes) -> bytes:
        """Return an argument independent of the source root and of made-up names."""
        return self._placed(self._temporaries.starred(text))

    def _path(self, row: int) -> bytes:
        name = self.image.path_string(row)
        if not self._temporaries.mode_of(row):
            name = self._temporaries.starred(name)
        return self._placed(_NUMBERED.sub(rb"\1\2*", name))

    @cached_property
    def paths(self) -> list[bytes]:
        """Normal names by row of `paths`."""
        return [self._path(row) for row in range(self.image["paths"].n_rows)]

    @cached_property
    def commands(self) -> list[int]:
        """Executions that have a program, in order of time."""
        table = self.image["executions"]
        rows = [row for row, binary in enumerate(table["binary"]) if binary != NONE]
        return sorted(rows, key=table["start_ns"].__getitem__)

    def argv(self, row: int) -> tuple[bytes, ...]:
        """Return the normal arguments of an execution."""
        arguments = self.image["arguments"]["string"]
        span = self.image["executions"].span("argv.start", row)
        return tuple(map(self._strings.__getitem__, arguments[span.start : span.stop]))

    def cwd(self, row: int) -> bytes:
        """Return the normal working directory of an execution."""
        return self._strings[self.image["executions"]["cwd"][row]]

    @cached_property
    def directories(self) -> frozenset[bytes]:
        """The working directories of all commands."""
        return frozenset(map(self.cwd, self.commands))

    def label(self, row: int) -> str:
        """Return the name of a command: `cc1 lvm.c`."""
        return self._labels.of(row)

    def program(self, row: int) -> bytes:
        """Return the normal path of an execution's program."""
        return self.paths[self.image["executions"]["binary"][row]]

    def whole(self, row: int) -> Hashable:
        """Return what is equal for equal commands."""
        if row not in self._keys:
            self._keys[row] = self.program(row), self.argv(row), self.cwd(row)
        return self._keys[row]

    def status(self, row: int) -> int | None:
        """Return the exit status; None if it is unknown (killed, or followed by an exec)."""
        status = int(self.image["executions"]["status"][row])
        return None if status == NONE else status

    def files(self, row: int, *, written: bool) -> frozenset[bytes]:
        """Return the files that an execution wrote or read."""
        opens = self.image["opens"]
        path, mode = opens["path"], opens["mode"]
        span = self.image["executions"].span("opens.start", row)
        return frozenset(
            self.paths[path[i]]
            for i in span
            if (mode[i] & WRITES != 0 if written else mode[i] & 1 == 0)
        )

    @cached_property
    def sizes(self) -> dict[bytes, int]:
        """Size in bytes of each file that the build only read."""
        image, written = self.image, self.all_files(written=True)
        size = image["paths"]["size"]
        return {p: size[row] for row, p in enumerate(self.paths) if p not in written}

    def all_files(self, *, written: bool) -> frozenset[bytes]:
        """Return the files that any execution wrote or read."""
        opens = self.image["opens"]
        return frozenset(
            self.paths[path]
            for path, mode in zip(opens["path"], opens["mode"], strict=True)
            if (mode & WRITES != 0 if written else mode & 1 == 0)
        )

    @cached_property
    def environment(self) -> dict[bytes, tuple[bytes, ...]]:
        """Values of each variable in all processes, sorted."""
        values: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for string in set(self.image["environment"]["string"]):
            name, _, value = self.image.string(string).partition(b"=")
            values[name].add(self.normal(value))
        return {name: tuple(sorted(found)) for name, found in values.items()}


class _Strings(dict[int, bytes]):
    """Normal strings by row, each made once."""

    def __init__(self, side: Side) -> None:
        super().__init__()
        self._side = side

    def __missing__(self, row: int) -> bytes:
        text = self[row] = self._side.normal(self._side.image.string(row))
        return text


Key = Callable[[Side, int], Hashable]


@dataclass(frozen=True, slots=True)
class Matching:
    """Rows of `executions` that match, sorted, and those of each side that do not, by time."""

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def _named(side: Side, row: int) -> Hashable:
    return side.label(row), side.cwd(row)


def _moved(before: Side, after: Side) -> Key:
    both = before.directories & after.directories
    return lambda side, row: None if side.cwd(row) in both else side.label(row)


def _outputs(side: Side, row: int) -> Hashable:
    written = side.files(row, written=True)
    return (os.path.basename(side.program(row)), written) if written else None  # noqa: PTH119


def _place(side: Side, row: int) -> Hashable:
    argv = side.argv(row)
    return os.path.basename(argv[0]) if argv else b"", side.cwd(row)  # noqa: PTH119


#: of commands that took the place of others
SIMILAR = (_outputs, _place)


def match(before: Side, after: Side, similar: Sequence[Key] = ()) -> Matching:
    """Match the commands of two builds; also those that are SIMILAR, if that is given."""
    left: tuple[Sequence[int], Sequence[int]] = (before.commands, after.commands)
    pairs: list[tuple[int, int]] = []
    for key in (Side.whole, _named, _moved(before, after), *similar):
        found, *rest = _match(before, after, left, key)
        pairs += found
        left = (rest[0], rest[1])
    return Matching(tuple(sorted(pairs)), tuple(left[0]), tuple(left[1]))


def _match(
    before: Side, after: Side, rows: tuple[Sequence[int], Sequence[int]], key: Key
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pair rows with equal keys in order; return the pairs and the unpaired rows of both sides."""
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row in reversed(rows[1]):
        waiting[key(after, row)].append(row)
    pairs, left = [], []
    for row in rows[0]:
        own = key(before, row)
        if own is not None and waiting[own]:
            pairs.append((row, waiting[own].pop()))
        else:
            left.append(row)
    paired = {row for _, row in pairs}
    return pairs, left, [row for row in rows[1] if row not in paired]
