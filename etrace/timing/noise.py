# SPDX-License-Identifier: Apache-2.0
"""Times of repeated builds -> how much a time differs from build to build when nothing changed.

The bound is that of Student's test of two means with one variance: a larger difference is by chance
in at most one of 20 comparisons. Two or three runs of one command show little, and now and then a
command is interrupted. So of many commands, the variance of each is at least that of the commands
that take about as long, the bound is such that in one of 20 comparisons any of them exceeds it
(Bonferroni), and it is half as much again as any of them differed by from its other runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

#: quantiles of Student's distribution for 97.5 %, by degrees of freedom from 1
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
CHANCE = 0.05
#: commands that take about as long as one, itself among them
N_ALIKE = 51
#: over what was seen: what was not seen may be larger
MARGIN = 1.5
#: shorter times are about as noisy as one of this
LEAST_NS = 1_000_000
#: times of one thing in the builds of each side
Times = tuple[Sequence[float], Sequence[float]]


def bound(times: Times) -> float | None:
    """Return what the difference of the means must exceed; None without a repeated build."""
    freedom = _freedom(times)
    if freedom < 1:
        return None
    return quantile(freedom) * math.sqrt(_squares(times) / freedom) * _spread(times)


def quantile(freedom: int) -> float:
    """Return Student's quantile for 97.5 %."""
    return STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96 + 2.4 / freedom


def bounds(many: Sequence[Times]) -> list[float] | None:
    """Return the bound of each of many commands; None without a repeated build."""
    freedom = [_freedom(times) for times in many]
    if not any(freedom):
        return None
    mean = [max(LEAST_NS, fmean([*times[0], *times[1]])) for times in many]
    order = sorted(range(len(many)), key=mean.__getitem__)
    squares = [_squares(many[i]) / mean[i] ** 2 for i in order]
    largest = [_largest(many[i]) / mean[i] for i in order]
    of_any = NormalDist().inv_cdf(1 - CHANCE / 2 / len(many))
    found = [0.0] * len(many)
    for at, i in enumerate(order):
        alike = _alike(at, len(order))
        variance = sum(squares[alike]) / max(1, sum(freedom[j] for j in order[alike]))
        own = squares[at] / freedom[i] if freedom[i] else 0.0
        usual = of_any * math.sqrt(max(own, variance)) * _spread(many[i])
        found[i] = mean[i] * max(usual, MARGIN * max(largest[alike]))
    return found


def _alike(at: int, n: int) -> slice:
    """Return the N_ALIKE of n around one."""
    first = max(0, min(at - N_ALIKE // 2, n - N_ALIKE))
    return slice(first, first + N_ALIKE)


def _largest(times: Times) -> float:
    """Return the largest difference of a time to the mean of the others of its side."""
    return max(
        (abs(each - fmean(side)) * len(side) / (len(side) - 1)
         for side in times if len(side) > 1 for each in side),
        default=0.0,
    )  # fmt: skip


def _freedom(times: Times) -> int:
    return sum(max(0, len(side) - 1) for side in times)


def _squares(times: Times) -> float:
    """Return the sum of the squares of what differs from the mean of its side."""
    return math.fsum((each - fmean(side)) ** 2 for side in times if side for each in side)


def _spread(times: Times) -> float:
    """Return the deviation of a difference of means, in deviations of one build."""
    return math.sqrt(sum(1 / len(side) for side in times if side))
