# SPDX-License-Identifier: Apache-2.0
"""Two databases -> what changed from one build to the other.

Commands match as matching.py says. Files are compared by name and by their size when the traces
were parsed: a database holds no content.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from libetrace.image.file import Image

from etrace.query.changes.matching import SIMILAR, Numbers, Side, match

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


def diff(before: Image, after: Image) -> Difference:
    """Return the differences between two builds."""
    numbers = Numbers()
    a, b = Side(before, numbers=numbers), Side(after, numbers=numbers)
    matched = match(a, b, SIMILAR)
    changed = (_changed(a, b, *pair) for pair in matched.pairs)
    return Difference(
        tuple(each for each in changed if each),
        matched.removed,
        matched.added,
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
        argument_delta(a.argv(before), b.argv(after)),
        _delta(a.files(before, written=False), b.files(after, written=False)),
        _pair(a.program(before), b.program(after)),
        _pair(a.cwd(before), b.cwd(after)),
        status,
    )


def _pair(before: T, after: T) -> tuple[T, T] | None:
    return None if before == after else (before, after)


def _delta(before: frozenset[bytes], after: frozenset[bytes]) -> Delta:
    return Delta(tuple(sorted(before - after)), tuple(sorted(after - before)))


def argument_delta(before: Sequence[bytes], after: Sequence[bytes]) -> Delta:
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
