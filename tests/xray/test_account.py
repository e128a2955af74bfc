# SPDX-License-Identifier: Apache-2.0
"""Calls and what they cost: llvm-xray's accounts of real logs, and others."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.xray import account as native
from xray import samples
from xray.builder import LogBuilder
from xray.samples import NESTED, session

from etrace.xray.account import account
from etrace.xray.log import ENDINGS, read_bytes

ACCOUNTED = ("ev_pie19.fdr", "rec_nopie19.fdr", "tail_pie19.fdr")


@pytest.mark.parametrize("name", ACCOUNTED)
def test_accounts_are_those_of_llvm_xray(name: str) -> None:
    """llvm-xray fails on the log of several threads; the others are right."""
    wanted = {
        int(row["funcid"]): row
        for row in csv.DictReader(io.StringIO(samples.oracle(f"{name}.account")))
    }
    report = account(session(name))
    seconds = report.clock.seconds
    got = {
        row.function: {
            "funcid": str(row.function), "count": str(row.count),
            "min": f"{seconds(row.minimum):e}",
            "median": f"{seconds(row.median):e}",
            "90%ile": f"{seconds(row.percentile_90):e}",
            "99%ile": f"{seconds(row.percentile_99):e}",
            "max": f"{seconds(row.maximum):e}", "sum": f"{seconds(row.total):e}",
            "debug": wanted[row.function]["debug"], "function": row.name,
        }
        for row in report.rows
    }  # fmt: skip
    assert got == wanted


# ---- by hand ----


def rows(data: bytes, **options: Any) -> dict[int, tuple[int, ...]]:
    """Return (count, sum, self) by function."""
    done = native.account(data, **options)
    return {row[0]: (row[2], row[8], row[9]) for row in done.rows}


def test_self_time_is_without_callees() -> None:
    assert rows(NESTED) == {1: (1, 25, 13), 2: (2, 12, 12)}


def test_recursion_counts_each_call() -> None:
    data = LogBuilder().thread(1).cpu(0, 0).enter(1, 0).enter(1, 3).exit(1, 4).exit(1, 1).build()
    assert rows(data) == {1: (2, 12, 8)}


def test_an_exit_ends_what_lost_its_own() -> None:
    data = LogBuilder().thread(1).cpu(0, 0).enter(1, 0).enter(2, 3).exit(1, 4).build()
    assert rows(data) == {1: (1, 7, 3)}
    assert rows(data, deduce=True) == {1: (1, 7, 3), 2: (1, 4, 4)}
    calls = read_bytes(data).calls()
    assert [ENDINGS[e] for e in calls["ending"]] == ["exit", "caller"]


def test_an_exit_without_its_call_is_counted_and_nothing_else() -> None:
    data = LogBuilder().thread(1).cpu(0, 0).exit(9, 1).enter(1, 0).exit(9, 1).exit(1, 1).build()
    done = native.account(data)
    assert (done.n_unmatched_exits, done.n_calls) == (2, 1)


def test_a_call_that_never_ends_is_shown_up_to_the_end_and_not_accounted() -> None:
    data = LogBuilder().thread(1).cpu(0, 0).enter(1, 0).enter(2, 5).exit(2, 5).build()
    assert rows(data) == {2: (1, 5, 5)}
    calls = read_bytes(data).calls()
    assert list(calls["ticks"]) == [10, 5]
    assert [ENDINGS[e] for e in calls["ending"]] == ["end-of-log", "exit"]
    assert list(calls["parent"]) == [-1, 0]
    assert list(calls["self_ticks"]) == [5, 5]


def test_a_tail_exit_ends_a_call() -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 0).enter(1, 0).tail_exit(1, 4).enter(2, 1).exit(2, 1).build()
    )
    calls = read_bytes(data).calls()
    assert list(calls["depth"]) == [0, 0]
    assert [ENDINGS[e] for e in calls["ending"]] == ["tail-exit", "exit"]


def test_threads_do_not_mix() -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 0).enter(1, 0)
        .thread(2).cpu(0, 0).exit(1, 9)
        .thread(1, wall_us=9).cpu(0, 50).exit(1, 0).build()
    )  # fmt: skip
    done = native.account(data, by="thread")
    assert [(row[0], done.threads[row[1]], row[8]) for row in done.rows] == [(1, (0, 100, 1), 50)]
    assert done.n_unmatched_exits == 1


def test_several_logs_are_one_account() -> None:
    done = native.account([NESTED, NESTED])
    assert {row[0]: (row[2], row[8]) for row in done.rows} == {1: (2, 50), 2: (4, 24)}
    assert done.threads == [(0, 100, 1), (1, 100, 1)]


# ---- filters ----


def test_time_of_functions_that_are_not_looked_at_is_their_callers() -> None:
    assert rows(NESTED, functions=[1]) == {1: (1, 25, 25)}
    assert rows(NESTED, functions=[2]) == {2: (2, 12, 12)}


def test_short_calls_are_left_out_and_their_time_is_their_callers() -> None:
    assert rows(NESTED, shortest=6) == {1: (1, 25, 18), 2: (1, 7, 7)}


def test_a_window_takes_calls_that_begin_in_it() -> None:
    assert rows(NESTED, from_tsc=10, until_tsc=16) == {2: (1, 5, 5)}


def test_calls_that_are_left_out_leave_no_gaps() -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 0).enter(1, 0).enter(2, 1).enter(3, 1).exit(3, 90)
        .exit(2, 1).exit(1, 1).build()
    )  # fmt: skip
    calls = read_bytes(data).calls(functions=[1, 3])
    assert (list(calls["function"]), list(calls["parent"])) == ([1, 3], [-1, 0])
    assert list(calls["depth"]) == [0, 1]


def test_short_calls_that_are_left_out_are_no_depth() -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 0).enter(1, 0).enter(2, 1).exit(2, 1)
        .enter(2, 1).enter(3, 1).exit(1, 9).build()
    )  # fmt: skip
    whole = read_bytes(data).calls()
    assert list(zip(whole["function"], whole["depth"], strict=True)) == [
        (1, 0), (2, 1), (2, 1), (3, 2),
    ]  # fmt: skip
    window = read_bytes(data).calls(from_tsc=1)
    assert list(zip(window["function"], window["depth"], window["parent"], strict=True)) == [
        (2, 0, -1), (2, 0, -1), (3, 1, 1),
    ]  # fmt: skip


# ---- percentiles and the slow truth ----


def slow_calls(steps: list[tuple[bool, int, int]]) -> dict[int, list[int]]:
    """Match enters and exits as plainly as can be; return durations by function."""
    stack: list[tuple[int, int]] = []
    found: dict[int, list[int]] = defaultdict(list)
    now = 0
    for is_enter, function, delta in steps:
        now += delta
        if is_enter:
            stack.append((function, now))
            continue
        if function not in [f for f, _ in stack]:
            continue
        while stack[-1][0] != function:
            stack.pop()
        found[function].append(now - stack.pop()[1])
    return found


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.booleans(), st.sampled_from([1, 2, 3, 5000, 70000]), st.integers(0, 2**32 - 1)
        ),
        max_size=200,
    )
)
def test_accounts_are_those_of_the_slow_way(steps: list[tuple[bool, int, int]]) -> None:
    builder = LogBuilder().thread(1).cpu(0, 0)
    for is_enter, function, delta in steps:
        (builder.enter if is_enter else builder.exit)(function, delta)
    got = {row[0]: row[2:9] for row in native.account(builder.build()).rows}
    wanted = {}
    for function, durations in slow_calls(steps).items():
        n, d = len(durations), sorted(durations)
        percentiles = (d[n // 2], d[n * 9 // 10], d[n * 99 // 100])
        wanted[function] = (n, d[0], *percentiles, d[-1], sum(d))
    assert got == wanted


def test_percentiles_of_many_calls_are_exact() -> None:
    builder = LogBuilder().thread(1).cpu(0, 0)
    durations = [(i * 7919) % 100_003 for i in range(20_000)]
    for duration in durations:
        builder.enter(1, 0).exit(1, duration)
    row = native.account(builder.build()).rows[0]
    d = sorted(durations)
    assert row[4:7] == (d[10_000], d[18_000], d[19_800])


def test_percentiles_hold_for_calls_of_any_length() -> None:
    """Durations of 2^32 - 1 ticks and more are kept another way than shorter ones."""
    lengths = [2**32 - 2, 2**32 - 1, 2**32, 2**40 + 7, 0, *(7 * i for i in range(9_000))]
    log, now = LogBuilder().thread(1), 1000
    for i, length in enumerate(lengths):
        function = 1 + i % 2
        log.cpu(0, now).enter(function, 0)
        now += length
        log.cpu(0, now).exit(function, 0)
    rows = {row[0]: row for row in native.account(log.build()).rows}
    for function, mine in ((1, lengths[::2]), (2, lengths[1::2])):
        n, ordered = len(mine), sorted(mine)
        wanted = [ordered[0], *(ordered[i] for i in (n // 2, n * 9 // 10, n * 99 // 100))]
        assert list(rows[function][2:9]) == [n, *wanted, ordered[-1], sum(mine)]
    few = native.account(log.build(), shortest=2**32 - 1).rows
    assert {row[0]: row[2:5] for row in few} == {1: (1, 2**32, 2**32), 2: (2, 2**32 - 1, 2**40 + 7)}
