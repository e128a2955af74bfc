# SPDX-License-Identifier: Apache-2.0
"""Limits on figures of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from etrace.errors import EtraceError, UsageError
from etrace.report.comparison.build import NS
from etrace.report.comparison.compare import Comparison, Figure
from etrace.report.comparison.limits import FIGURES, judge, read_limit

S = 1_000_000_000


def comparison(name: str, figure: Figure) -> Comparison:
    empty = Comparison({}, (1, 1), "", *((),) * 14)
    return replace(empty, figures={name: figure})


def is_exceeded(text: str, before: float, after: float, noise: float | None = None) -> bool:
    limit = read_limit(text)
    figure = Figure(FIGURES[limit.figure], before, after, noise)
    return judge(comparison(limit.figure, figure), limit).is_exceeded


@pytest.mark.parametrize(
    ("text", "before", "over", "within"),
    [
        ("wall>+10%", 10 * S, 11.1 * S, 11 * S), ("wall > +10 %", 10 * S, 11.1 * S, 11 * S),
        ("wall>+2s", 10 * S, 12.1 * S, 12 * S), ("cpu>1.5s", 9 * S, 1.6 * S, 1.5 * S),
        ("critical-path>=+250ms", 0, S / 4, S / 5), ("wall<-50%", 10 * S, 4 * S, 5 * S),
        ("size>+20kB", 0, 20_001, 20_000), ("size>-1%", 1000, 1000, 980),
        ("failed>0", 3, 1, 0), ("failed>+0", 3, 4, 3), ("failed>+0%", 0, 1, 0),
        ("commands<=7", 9, 7, 8), ("dependencies>+.5%", 1000, 1006, 1005),
    ],
)  # fmt: skip
def test_a_limit_is_exceeded_beyond_its_number(
    text: str, before: float, over: float, within: float
) -> None:
    assert is_exceeded(text, before, over)
    assert not is_exceeded(text, before, within)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("wall", "for example"), ("wall=3s", "for example"), ("wall>", "for example"),
        ("wall>+-3s", "for example"), ("walls>+3s", "there are: wall, cpu"),
        ("wall>10%", "write >+10%"), ("wall>+3", "units: ns, us, ms, s, or %"),
        ("wall>+3kB", "units: ns"), ("size>+3s", "units: B, kB"), ("failed>3s", "for example"),
        ("wall>+1e3s", "units"), ("", "for example"),
    ],
)  # fmt: skip
def test_a_wrong_limit_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        read_limit(text)
    assert hint in error.value.hint
    assert repr(text) in error.value.message


def test_a_change_within_the_noise_is_not_over_a_limit() -> None:
    assert not is_exceeded("wall>+10%", 10 * S, 12 * S, noise=3 * S)
    assert is_exceeded("wall>+10%", 10 * S, 14 * S, noise=3 * S)
    assert is_exceeded("wall>11s", 10 * S, 12 * S, noise=3 * S)


def test_a_figure_that_is_not_known_is_an_error() -> None:
    with pytest.raises(EtraceError, match="cpu is not known"):
        judge(comparison("cpu", Figure(NS, None, 3.0)), read_limit("cpu>+1%"))
