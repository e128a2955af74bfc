# SPDX-License-Identifier: Apache-2.0
"""Two databases -> what changed from one build to the other.

First, commands match when they differ only in the source root and in made-up names of temporary
files (etrace/query/classes/temporary.py). Then commands of one program match that wrote the same
files, then those of one program in one directory, in order of time. Files are compared by name and
by their size when the traces were parsed: a database holds no content.
"""

from __future__ import annotations

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from libetrace.image.file import Image

from etrace.query.classes.temporary import WRITES, Temporaries
from etrace.spec.database import NONE

ROOT = b"$ROOT"
#: numbers of processes, pipes and sockets, which the kernel assigns
_NUMBERED = re.compile(rb"^(/proc/)\d+(?=/|$)|\b(pipe:|socket:)\[\d+\]$")
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Delta:
    """What only one side has, sorted."""

    removed: tuple[bytes, ...] = ()
    added: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


@dataclass(frozen=True, slots=True)
class Changed:
    """A command on both sides (rows of `executions`). Pairs are (before, after), None if equal."""

    before: int
    after: int
    arguments: Delta
    inputs: Delta
    program: tuple[bytes, bytes] | None
    cwd: tuple[bytes, bytes] | None
    status: tuple[int | None, int | None] | None  #: in the pair, None is an unknown status

    def __bool__(self) -> bool:
        return bool(
            self.arguments or self.inputs or self.program or self.cwd or self.status is not None
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences: rows of `executions` of each side, file names, variables."""

    changed: tuple[Changed, ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    inputs: Delta
    outputs: Delta
    resized: Mapping[bytes, tuple[int, int]]
    environment: Mapping[bytes, tuple[tuple[bytes, ...], tuple[bytes, ...]]]

    def __bool__(self) -> bool:
        return bool(
            self.changed or self.removed or self.added or self.inputs or self.outputs
            or self.resized or self.environment
        )  # fmt: skip


class Side:
    """One build, with names normalised: without the source root and temporary parts."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self._known: dict[int, bytes] = {}
        self._temporaries = Temporaries(image)
        self._root = os.fsencode(image.attributes.get("source_root", "")).rstrip(b"/")

    def _placed(self, text: bytes) -> bytes:
        """Return a name or argument independent of the source root."""
        if not self._root:
            return text
        return re.sub(re.escape(self._root) + rb"(?=/|$)", lambda _: ROOT, text)

    def normal(self, text: bytes) -> bytes:
        """Return an argument independent of the source root and of made-up names."""
        return self._placed(self._temporaries.starred(text))

    def _string(self, row: int) -> bytes:
        if row not in self._known:
            self._known[row] = self.normal(self.image.string(row))
        return self._known[row]

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
        return tuple(self._string(arguments[i]) for i in span)

    def cwd(self, row: int) -> bytes:
        """Return the normal working directory of an execution."""
        return self._string(self.image["executions"]["cwd"][row])

    def program(self, row: int) -> bytes:
        """Return the normal path of an execution's program."""
        return self.paths[self.image["executions"]["binary"][row]]

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


Key = Callable[[Side, int], Hashable]


def _whole(side: Side, row: int) -> Hashable:
    return side.program(row), side.argv(row), side.cwd(row)


def _outputs(side: Side, row: int) -> Hashable:
    written = side.files(row, written=True)
    return (os.path.basename(side.program(row)), written) if written else None  # noqa: PTH119


def _place(side: Side, row: int) -> Hashable:
    argv = side.argv(row)
    return os.path.basename(argv[0]) if argv else b"", side.cwd(row)  # noqa: PTH119


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


def diff(before: Image, after: Image) -> Difference:
    """Return the differences between two builds."""
    a, b = Side(before), Side(after)
    left: tuple[Sequence[int], Sequence[int]] = (a.commands, b.commands)
    pairs: list[tuple[int, int]] = []
    for key in (_whole, _outputs, _place):
        found, *rest = _match(a, b, left, key)
        pairs += found
        left = (rest[0], rest[1])
    changed = (_changed(a, b, *pair) for pair in sorted(pairs))
    return Difference(
        tuple(each for each in changed if each),
        tuple(left[0]),
        tuple(left[1]),
        _delta(a.all_files(written=False), b.all_files(written=False)),
        _delta(a.all_files(written=True), b.all_files(written=True)),
        _unequal(a.sizes, b.sizes),
        _environment(a.environment, b.environment),
    )


def _changed(a: Side, b: Side, before: int, after: int) -> Changed:
    status = _pair(a.status(before), b.status(after))
    return Changed(
        before,
        after,
        _argument_delta(a.argv(before), b.argv(after)),
        _delta(a.files(before, written=False), b.files(after, written=False)),
        _pair(a.program(before), b.program(after)),
        _pair(a.cwd(before), b.cwd(after)),
        status,
    )


def _pair(before: T, after: T) -> tuple[T, T] | None:
    return None if before == after else (before, after)


def _delta(before: frozenset[bytes], after: frozenset[bytes]) -> Delta:
    return Delta(tuple(sorted(before - after)), tuple(sorted(after - before)))


def _argument_delta(before: Sequence[bytes], after: Sequence[bytes]) -> Delta:
    """Return arguments of one side only, in their order; order alone is a change too."""
    removed: list[bytes] = []
    added: list[bytes] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            removed += before[i:j]
            added += after[k:m]
    return Delta(tuple(removed), tuple(added))


def _unequal(
    before: Mapping[bytes, int], after: Mapping[bytes, int]
) -> dict[bytes, tuple[int, int]]:
    return {
        name: (before[name], after[name])
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    }


Values = Mapping[bytes, tuple[bytes, ...]]


def _environment(
    before: Values, after: Values
) -> dict[bytes, tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
    names: Iterable[bytes] = sorted(before.keys() | after.keys())
    values = {name: (before.get(name, ()), after.get(name, ())) for name in names}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}
