# SPDX-License-Identifier: Apache-2.0
"""Ticks to nanoseconds: which rate is used, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from xray.builder import LogBuilder

from etrace.errors import EtraceError
from etrace.xray.account import account
from etrace.xray.clock import RateSource, choose
from etrace.xray.log import read_bytes
from etrace.xray.session import Session


def test_a_wrong_header_rate_is_replaced_by_the_measured_one() -> None:
    pairs = [(0, 0, 0), (1, 0, 2_700_000_000)]
    clock = choose(3_900_000_000, pairs)
    assert (clock.hz, clock.source) == (2_700_000_000, RateSource.MEASURED)
    assert "3900.000 MHz" in str(clock.warning())
    assert choose(3_900_000_000, pairs, "header").hz == 3_900_000_000
    assert choose(2_710_000_000, pairs).source is RateSource.HEADER
    assert choose(5, pairs, "1e6").hz == 1_000_000


@pytest.mark.parametrize("bad", [0, 7, 19])
def test_one_bad_clock_of_many_does_not_decide(bad: int) -> None:
    pairs = [(0, 100_000 * i + (10**9 if i == bad else 0), 270_000_000 * i) for i in range(20)]
    assert choose(2_700_000_000, pairs).source is RateSource.HEADER
    assert choose(3_900_000_000, pairs).hz == 2_700_000_000


def test_a_buffer_that_lost_its_clock_measures_nothing(tmp_path: Path) -> None:
    now = 1_700_000_000_000_000
    builder = LogBuilder(hz=10**9).thread(1, wall_us=now).cpu(0, 10**9).enter(1, 0).exit(1, 5)
    data = bytearray(
        builder.thread(1, wall_us=now + 5 * 10**7).cpu(0, 51 * 10**9).enter(1, 0).build()
    )
    data[64] = 0x7F  # what was the WallTime of the first buffer
    (tmp_path / "log").write_bytes(data)
    for clock, first in (
        (read_bytes(bytes(data)).clock(), 10**9),
        (Session([str(tmp_path / "log")]).clock, Session([str(tmp_path / "log")]).first_tsc),
    ):
        assert (clock.hz, clock.source, first) == (10**9, RateSource.HEADER, 10**9)


def test_an_emulated_counter_is_nanoseconds() -> None:
    clock = choose(10**9, [(5, 0, 1_700_000_000 * 10**9), (6, 0, 1_700_000_003 * 10**9)])
    assert clock.is_emulated
    assert (clock.hz, clock.warning()) == (10**9, None)


@pytest.mark.parametrize("option", ["0", "-5", "fast", "inf", "nan"])
def test_what_is_no_rate_is_refused(option: str) -> None:
    with pytest.raises(EtraceError, match="not a rate"):
        choose(10**9, [], option)


def test_a_log_without_a_rate_asks_for_one() -> None:
    with pytest.raises(EtraceError, match="give a clock rate"):
        choose(0, [])


def test_nanoseconds_are_exact_where_doubles_are_not() -> None:
    clock = choose(10**9, [])
    assert clock.ns(1_700_000_000_123_456_789) == 1_700_000_000_123_456_789


def test_logs_of_different_rates_are_not_added(tmp_path: Path) -> None:
    for name, hz in (("a", 10**9), ("b", 2 * 10**9)):
        (tmp_path / name).write_bytes(LogBuilder(hz=hz).thread(1).cpu(0, 0).enter(1, 0).build())
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.raises(EtraceError, match="different clock rates"):
        account(Session(paths))
    assert account(Session(paths, hz="1e9")).n_calls == 0


def test_logs_of_one_machine_share_the_rate_that_the_longest_measures(tmp_path: Path) -> None:
    short = LogBuilder(hz=3_900_000_000).thread(1).cpu(0, 0).enter(1, 0).exit(1, 2700)
    (tmp_path / "short").write_bytes(short.build())
    short.thread(1, wall_us=500_000).cpu(0, 1_350_000_000)
    (tmp_path / "long").write_bytes(short.build())
    both = Session([str(tmp_path / "short"), str(tmp_path / "long")])
    assert (both.clock.hz, both.clock.source) == (2_700_000_000, RateSource.MEASURED)
    assert Session([str(tmp_path / "short")]).clock.hz == 3_900_000_000
