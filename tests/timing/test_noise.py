# SPDX-License-Identifier: Apache-2.0
"""How much times differ without a change."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from etrace.timing.noise import Times, bound, bounds

MS = 1_000_000
N_TRIALS, N_COMMANDS = 40, 100


def test_one_run_of_each_build_says_nothing() -> None:
    assert bound(([1.0], [2.0])) is None
    assert bounds([([1.0], [2.0])]) is None
    assert bounds([]) is None


def test_the_bound_is_that_of_students_test() -> None:
    # 2.571 for 5 degrees of freedom, times sqrt(7 / 5), times sqrt(1 / 4 + 1 / 3)
    assert bound(([10.0, 11.0, 12.0, 13.0], [14.0, 15.0, 16.0])) == pytest.approx(2.3234, abs=1e-4)
    assert bound(([10.0, 12.0], [11.0])) == pytest.approx(12.706 * 2**0.5 * 1.5**0.5)


def _time(chance: random.Random, mean: float) -> float:
    """Return a time of a command: it varies by 5 %, and each 50th is interrupted for a while."""
    interrupted = 1.3 if chance.random() < 0.02 else 1.0
    return max(0.0, mean * interrupted * chance.gauss(1, 0.05) + chance.gauss(0, 0.2 * MS))


def _build(chance: random.Random) -> list[Times]:
    means = [MS * 10 ** chance.uniform(-1, 4) for _ in range(N_COMMANDS)]
    return [([_time(chance, mean) for _ in range(3)], [_time(chance, mean)]) for mean in means]


def test_commands_without_a_change_are_seldom_beyond_the_bound() -> None:
    chance, n_wrong = random.Random(1), 0
    for _ in range(N_TRIALS):
        times = _build(chance)
        own = bounds(times)
        assert own is not None
        n_wrong += any(
            abs(fmean(a) - fmean(b)) > most for (a, b), most in zip(times, own, strict=True)
        )
    assert n_wrong <= N_TRIALS // 5


def test_a_command_that_takes_twice_as_long_is_beyond_the_bound() -> None:
    times = _build(random.Random(2))
    slow = max(range(N_COMMANDS), key=lambda i: times[i][0][0])
    times[slow] = (times[slow][0], [2 * times[slow][0][0]])
    own = bounds(times)
    assert own is not None
    assert fmean(times[slow][1]) - fmean(times[slow][0]) > own[slow]


def test_a_command_that_ran_once_has_the_noise_of_those_that_take_as_long() -> None:
    times: list[Times] = [([100.0 * MS, 104.0 * MS], [100.0 * MS])] * 10
    own = bounds([*times, ([101.0 * MS], [130.0 * MS])])
    assert own is not None
    assert 4 * MS < own[-1] < 30 * MS
