# SPDX-License-Identifier: Apache-2.0
"""A figure of many builds -> its values by commit in order of time, and where it changed.

Builds of one commit are repetitions. A change is a commit from which on the mean of the builds
exceeds the noise: the bound of etrace/timing/noise.py between the builds before and after, half as
much again, and more for the commit is the best one of many (Bonferroni). Each side is searched
again.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist, fmean, stdev

from etrace.errors import NothingFoundError
from etrace.fleet.dataset import EVERYTHING, Dataset, Range
from etrace.fleet.duck import Duck
from etrace.timing.noise import CHANCE, MARGIN, quantile

#: builds on each side of a change
LEAST_BUILDS = 3
MAX_CHANGES = 20
MAX_DEPTH = 10
#: smaller parts of a value are those of its arithmetic
ROUNDING = 1e-9
_COMMIT = "COALESCE(b.labels['commit'], b.build)"
#: figure -> the statement of its values, and its unit
_OF_BUILDS = "SELECT {commit}, b.time, {value} FROM builds b WHERE {value} IS NOT NULL"
_OF_MODULES = (
    "SELECT {commit}, b.time, m.{value} FROM modules m JOIN builds b ON b.build = m.build "
    "WHERE m.path = $of AND m.{value} IS NOT NULL"
)
_OF_STEPS = (
    "SELECT {commit}, b.time, SUM(e.elapsed_ns) / 1e9 FROM executions e "
    "JOIN builds b ON b.build = e.build WHERE e.step = $of GROUP BY b.build, {commit}, b.time"
)
FIGURES = {
    "time": (_OF_BUILDS, "b.elapsed_ns / 1e9", "s"),
    "cpu": (_OF_BUILDS, "b.cpu_ns / 1e9", "s"),
    "commands": (_OF_BUILDS, "b.commands", ""),
    "size": (_OF_MODULES, "size_bytes", "bytes"),
    "dependencies": (_OF_MODULES, "n_inputs", "files"),
    "step": (_OF_STEPS, "", "s"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """The builds of a commit, at the time of the first; `deviation` is 0 for one build."""

    commit: str
    time: datetime.datetime
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """Their standard deviation, 0 for a single build."""
        return stdev(self.values) if len(self.values) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """From the point `at` on, the mean is `after` instead of `before`."""

    at: int
    before: float
    after: float
    noise: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The values of a figure in order of time, and its changes."""

    title: str
    unit: str
    points: Sequence[Point]
    changes: Sequence[Change]


def trend(dataset: Dataset, figure: str, of: str = "", wanted: Range = EVERYTHING) -> Trend:
    """Return the trend of a figure; `of` is the module or the step. NothingFoundError."""
    template, value, unit = FIGURES[figure]
    statement = template.format(commit=_COMMIT, value=value)
    values = {"of": of} if "$of" in statement else None
    rows = Duck(dataset, wanted).ask(f"{statement} ORDER BY 2", values, is_trusted=True).rows
    points: dict[str, list[tuple[datetime.datetime, float]]] = {}
    for commit, time, number in rows:
        points.setdefault(commit, []).append((time, float(number)))
    if not points:
        builds = f"build of {' or '.join(wanted.projects)}" if wanted.projects else "build"
        raise NothingFoundError(
            f"no {builds} has {figure}{f' of {of}' if of else ''}", "etrace fleet query builds"
        )
    found = [
        Point(commit, own[0][0], tuple(number for _, number in own))
        for commit, own in points.items()
    ]
    changes = sorted(changes_of(found), key=lambda change: change.at)
    return Trend(f"{figure} of {of}" if of else figure, unit, found, changes[:MAX_CHANGES])


def _one_of_many(n: int) -> float:
    """Return how much more the largest of n differences is by chance."""
    normal = NormalDist()
    return normal.inv_cdf(1 - CHANCE / 2 / max(1, n)) / normal.inv_cdf(1 - CHANCE / 2)


def changes_of(points: Sequence[Point], first: int = 0, depth: int = MAX_DEPTH) -> Iterator[Change]:
    """Yield the changes of some points; `first` is the number of the first of them."""
    counts = list(accumulate(len(point.values) for point in points))
    middle = fmean(value for point in points for value in point.values) if points else 0.0
    sums = list(accumulate(sum(v - middle for v in point.values) for point in points))
    squares = list(accumulate(sum((v - middle) ** 2 for v in point.values) for point in points))
    best, best_ratio = None, 1.0
    factor = MARGIN * _one_of_many(counts[-1] - 2 * LEAST_BUILDS + 1) if points else 0.0
    for at in range(1, len(points)):
        n = counts[at - 1], counts[-1] - counts[at - 1]
        if min(n) < LEAST_BUILDS:
            continue
        own = sums[at - 1], sums[-1] - sums[at - 1]
        rest = max(0.0, squares[-1] - own[0] ** 2 / n[0] - own[1] ** 2 / n[1])
        freedom = sum(n) - 2
        noise = factor * quantile(freedom) * math.sqrt(rest / freedom * (1 / n[0] + 1 / n[1]))
        before, after = (middle + total / count for total, count in zip(own, n, strict=True))
        least = max(noise, abs(middle) * ROUNDING)
        ratio = abs(after - before) / least if least else 0.0
        if ratio > best_ratio:
            best, best_ratio = Change(first + at, before, after, noise), ratio
    if best is not None and depth:
        at = best.at - first
        yield best
        yield from changes_of(points[:at], first, depth - 1)
        yield from changes_of(points[at:], first + at, depth - 1)
