# SPDX-License-Identifier: Apache-2.0
"""The tables of targets of an image -> what make or ninja ran an execution for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

from libetrace.image.file import Image
from libetrace.select.patterns import PatternSet

from etrace.errors import EtraceError
from etrace.spec.database import NONE

TABLE = "targets"
#: values of the column `kind`
OUTPUTS, GOAL = 0, 1


class Targets:
    """The targets of the executions of one image."""

    def __init__(self, image: Image) -> None:
        self.are_known = TABLE in image.tables
        self._image = image
        self._names = lru_cache(maxsize=1 << 16)(self._read_names)

    @cached_property
    def _of(self) -> Sequence[int]:
        found: Sequence[int] = self._image["execution_targets"]["target"]
        return found

    def names(self, row: int) -> list[bytes]:
        """Return the names of the nearest target of a row of `executions`; empty: not known."""
        target = self._of[row] if self.are_known else NONE
        return [] if target == NONE else self._names(target)

    def all_names(self, row: int) -> Iterator[bytes]:
        """Yield the names of the targets that a row of `executions` is for, outer ones too."""
        if self.are_known:
            for target in self._chain(row):
                yield from self._names(target)

    def outputs(self, row: int, tool: int) -> list[bytes]:
        """Return what a run of make or ninja ran an execution to make; empty: not known."""
        if not self.are_known or (target := self._of[row]) == NONE:
            return []
        table = self._image[TABLE]
        if table["tool"][target] != tool or table["kind"][target] != OUTPUTS:
            return []
        return self._names(target)

    def _read_names(self, target: int) -> list[bytes]:
        strings = self._image["target_names"]["string"]
        span = self._image[TABLE].span("names.start", target)
        return [self._image.string(strings[i]) for i in span]

    def of_any(self, rows: Iterable[int], patterns: Sequence[str]) -> list[int]:
        """Return the rows whose targets, the nearest or one that it is for, match a pattern.

        EtraceError when the image has none yet.
        """
        if not self.are_known:
            raise EtraceError(f"{self._image.path} has no targets yet", "run: cas pp --targets")
        wanted = self._matching(PatternSet(patterns))
        return [row for row in rows if any(target in wanted for target in self._chain(row))]

    def _matching(self, patterns: PatternSet) -> set[int]:
        rows = range(self._image[TABLE].n_rows)
        return {row for row in rows if any(any(patterns.match(n)) for n in self._names(row))}

    def _chain(self, row: int) -> Iterator[int]:
        """Yield the target of an execution, then those that its make or ninja ran for."""
        outer, target = self._image[TABLE]["outer"], self._of[row]
        while target != NONE:
            yield target
            above = outer[target]
            target = above if above < target else NONE  # only a damaged image has others
