# SPDX-License-Identifier: Apache-2.0
"""The figures at the top of the page: words, values and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from etrace.figures import seconds
from etrace.query.totals import MEANINGS, Totals
from etrace.timing.critical_path import CriticalPath

PATH = "the longest chain of commands that had to wait for each other"
LIMIT = "how many times faster more jobs can make it; 1: no faster"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: `value` is a time in ns, a number, or a ratio, as `kind` says."""

    word: str
    kind: str
    value: float
    meaning: str

    @property
    def text(self) -> str:
        """The value where no script runs."""
        if self.kind == "time":
            return seconds(round(self.value))
        return f"{self.value:,}" if self.kind == "number" else f"{self.value:.1f}"


def figures(totals: Totals, path: CriticalPath | None) -> Iterator[Figure]:
    """Yield the figures of a build; those that are not known are left out."""
    yield _figure("elapsed", "time", totals.elapsed_ns)
    if path is not None:
        most, least = (f", {bound}" if bound else "" for bound in path.bounds)
        yield Figure(f"critical path{most}", "time", path.path_ns, PATH)
        yield Figure(f"elapsed / critical path{least}", "ratio", path.speedup_limit, LIMIT)
    if totals.cpu_ns is not None:
        yield _figure("CPU", "time", totals.cpu_ns)
    for word in ("processes", "commands", "failed", "files"):
        yield _figure(word, "number", getattr(totals, word))
    if totals.linked_modules is not None and totals.compilations is not None:
        yield _figure("linked modules", "number", totals.linked_modules)
        yield _figure("compilations", "number", totals.compilations)


def _figure(word: str, kind: str, value: int) -> Figure:
    return Figure(word, kind, value, MEANINGS[word])
