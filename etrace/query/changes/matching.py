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
from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

from libetrace.image.file import Image

from etrace.nfsdb.environment import all_variables, is_traced
from etrace.query.facts import source_root
from etrace.query.rows.labels import Labels
from etrace.query.rows.temporary import WRITES, Temporaries
from etrace.spec.database import NONE

T = TypeVar("T")
ROOT = b"$ROOT"
#: numbers of processes, pipes and sockets, which the kernel assigns
_NUMBERED = re.compile(rb"^(/proc/)\d+(?=/|$)|\b(pipe:|socket:)\[\d+\]$")


def roots(before: Image, after: Image) -> tuple[bytes, bytes]:
    """Return what to take off names: /a and /b for builds in /a/src and /b/src."""
    a, b = (source_root(image).rstrip(b"/") for image in (before, after))
    while a != b:
        (upper_a, _, last_a), (upper_b, _, last_b) = a.rpartition(b"/"), b.rpartition(b"/")
        if last_a != last_b or not upper_a or not upper_b:
            break
        a, b = upper_a, upper_b
    return a, b


#: of a made-up name, what is looked for first
N_BEGIN = 4


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of equal names and of equal commands, one for all builds that are compared."""

    names: dict[bytes, int] = field(default_factory=dict)
    commands: dict[Hashable, int] = field(default_factory=dict)


class Side:
    """One build, with names normalised: without the source root and temporary parts.

    Sides that are compared share their `numbers`.
    """

    def __init__(
        self, image: Image, root: bytes | None = None, temporaries: Temporaries | None = None,
        numbers: Numbers | None = None,
        words: Callable[[Sequence[bytes]], list[bytes]] | None = None,
    ) -> None:  # fmt: skip
        """With `words` names of commands show no more than what it makes of their arguments."""
        self.image = image
        self.numbers = numbers or Numbers()
        self._temporaries = temporaries or Temporaries(image)
        self._root = source_root(image).rstrip(b"/") if root is None else root
        self._below_root = re.compile(re.escape(self._root) + rb"(?=/|$)")
        self._labels = Labels(image, words)
        self._strings = _Normal(lambda row: self.normal(image.string(row)))
        #: normal names by row of `paths`
        self.paths = _Normal(self._path)

    def _placed(self, text: bytes) -> bytes:
        """Return a name or argument independent of the source root."""
        if not self._root or self._root not in text:
            return text
        return self._below_root.sub(lambda _: ROOT, text)

    @cached_property
    def _made_up(self) -> re.Pattern[bytes] | None:
        """What a text with a made-up name contains: how one of them begins."""
        begins = {re.escape(name[:N_BEGIN]) for name in self._temporaries.made_up}
        return re.compile(b"|".join(sorted(begins))) if begins else None

    def _starred(self, text: bytes) -> bytes:
        is_made_up = self._made_up is not None and self._made_up.search(text)
        return self._temporaries.starred(text) if is_made_up else text

    def normal(self, text: bytes) -> bytes:
        """Return an argument independent of the source root and of made-up names."""
        return self._placed(self._starred(text))

    def _path(self, row: int) -> bytes:
        name = self.image.path_string(row)
        if not self._temporaries.mode_of(row):
            name = self._starred(name)
        return self._placed(_NUMBERED.sub(rb"\1\2*", name))

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
        cwd = self.image["executions"]["cwd"]
        return frozenset(self._strings[row] for row in {cwd[row] for row in self.commands})

    def label(self, row: int) -> str:
        """Return the name of a command: `cc1 lvm.c`."""
        return self._labels.of(row)

    def program(self, row: int) -> bytes:
        """Return the normal path of an execution's program."""
        return self.paths[self.image["executions"]["binary"][row]]

    @cached_property
    def whole(self) -> array[int]:
        """A number that is the same for equal commands, by row; NONE without a program."""
        table, commands = self.image["executions"], self.numbers.commands
        binary, cwd, start = table["binary"], table["cwd"], table["argv.start"].tolist()
        names = _Normal(lambda row: self._number(self._strings[row]))
        programs = _Normal(lambda row: self._number(self.paths[row]))
        argv = array("I", map(names.__getitem__, self.image["arguments"]["string"]))
        found = array("i", [NONE]) * table.n_rows
        for row in self.commands:
            words = argv[start[row] : start[row + 1]].tobytes()
            own = programs[binary[row]], names[cwd[row]], words
            found[row] = commands.setdefault(own, len(commands))
        return found

    def _number(self, name: bytes) -> int:
        return self.numbers.names.setdefault(name, len(self.numbers.names))

    def status(self, row: int) -> int | None:
        """Return the exit status; None if it is unknown (killed, or followed by an exec)."""
        status = int(self.image["executions"]["status"][row])
        return None if status == NONE else status

    @cached_property
    def failed(self) -> frozenset[int]:
        """The executions that ended with a status other than 0."""
        status = self.image["executions"]["status"]
        return frozenset(row for row, each in enumerate(status) if each not in (0, NONE))

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
        paths = map(self.paths.__getitem__, range(len(size)))
        return {path: size[row] for row, path in enumerate(paths) if path not in written}

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
        """Values of each variable in all processes, sorted; none unless all were traced."""
        if not is_traced(self.image):
            return {}
        values: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for variable in all_variables(self.image):
            name, _, value = variable.partition(b"=")
            values[name].add(self.normal(value))
        return {name: tuple(sorted(found)) for name, found in values.items()}


class _Normal(dict[int, T]):
    """What is made of a row, each made once."""

    def __init__(self, make: Callable[[int], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, row: int) -> T:
        made = self[row] = self._make(row)
        return made


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
    if before.numbers is not after.numbers:
        raise ValueError("sides with numbers of their own")
    rows: tuple[Sequence[int], Sequence[int]] = (before.commands, after.commands)
    pairs, *left = _match(rows, before.whole.__getitem__, after.whole.__getitem__)
    for key in (_named, _moved(before, after), *similar):
        found, *left = _match((left[0], left[1]), partial(key, before), partial(key, after))
        pairs += found
    return Matching(tuple(sorted(pairs)), tuple(left[0]), tuple(left[1]))


def _match(
    rows: tuple[Sequence[int], Sequence[int]],
    before: Callable[[int], Hashable],
    after: Callable[[int], Hashable],
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pair rows with equal keys in order; return the pairs and the unpaired rows of both sides."""
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row in reversed(rows[1]):
        waiting[after(row)].append(row)
    pairs, left = [], []
    for row in rows[0]:
        own = before(row)
        others = waiting.get(own) if own is not None else None
        if others:
            pairs.append((row, others.pop()))
        else:
            left.append(row)
    paired = {other for _, other in pairs}
    return pairs, left, [row for row in rows[1] if row not in paired]
