# SPDX-License-Identifier: Apache-2.0
"""Calls and what they cost: llvm-xray's accounts and stacks of real logs, and others."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xray_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.xray import account as native
from xray_builder import LogBuilder

from etrace.errors import EtraceError
from etrace.xray.account import account
from etrace.xray.clock import RateSource, choose
from etrace.xray.graph import LABELS, Figures, combine
from etrace.xray.log import ENDINGS, read_bytes
from etrace.xray.names import Names, read_maps
from etrace.xray.selection import Selection, parse_time
from etrace.xray.session import Session
from etrace.xray.stacks import Stacks, stacks, stacks_by_thread

ACCOUNTED = ("ev_pie19.fdr", "rec_nopie19.fdr", "tail_pie19.fdr")


def session(name: str, **options: Any) -> Session:
    names = Names(read_maps([str(samples.program(name))]))
    return Session([str(samples.log(name))], names, **options)


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


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_stacks_are_those_of_llvm_xray(name: str) -> None:
    """Exactly, but for recursion: there llvm-xray makes several stacks of one path."""
    blocks = samples.oracle(f"{name}.stack").split("lvl   function")[1:]
    assert blocks
    found = [
        {tuple(part.name[:40] for part in node.path()): node for node in one.nodes}
        for one in stacks_by_thread(session(name))
    ]
    for block in blocks:
        rows = re.findall(r"#\d+\s+(.*?)\s{2,}(\d+)\s+(\d+)\n", block)
        path = tuple(function.rstrip(".")[:40] for function, _, _ in rows)
        figures = [(int(count), int(ticks)) for _, count, ticks in rows]
        ours = [[(p.count, p.ticks) for p in one[path].path()] for one in found if path in one]
        if len(set(path)) == len(path):
            assert figures in ours, path
        else:
            assert any(all(a <= b for a, b in zip(figures, o, strict=True)) for o in ours), path


def test_self_times_of_all_stacks_add_up_to_the_roots() -> None:
    found = stacks(session("mt_pie19.fdr"))
    total = sum(node.self_ticks for node in found.nodes)
    assert total == sum(root.ticks for root in found.roots)
    folded = [line.rpartition(" ") for line in found.folded("self")]
    assert sum(int(value) for _, _, value in folded) == total
    assert len({names for names, _, _ in folded}) == len(folded)


def test_threads_can_be_kept_apart() -> None:
    found = list(stacks_by_thread(session("mt_pie19.fdr")))
    assert len({one.thread for one in found}) == 5
    together = stacks(session("mt_pie19.fdr"))
    assert sum(n.count for one in found for n in one.nodes) == sum(n.count for n in together.nodes)
    one = found[2]
    alone = replace(session("mt_pie19.fdr"), selection=Selection(threads=[one.thread]))
    (same,) = stacks_by_thread(alone)
    assert (same.process, same.thread) == (one.process, one.thread)
    assert figures(same) == figures(one) == figures(stacks(alone))


def figures(found: Stacks) -> set[tuple[str, int, int]]:
    return {
        (";".join(part.name for part in node.path()), node.count, node.ticks)
        for node in found.nodes
    }


def test_a_thread_of_several_logs_has_its_stacks_once() -> None:
    once = session("mt_pie19.fdr")
    found = list(stacks_by_thread(replace(once, paths=[*once.paths, *once.paths])))
    assert len(found) == 5
    assert sum(n.count for one in found for n in one.nodes) == 2 * sum(
        n.count for n in stacks(once).nodes
    )


# ---- by hand ----


def rows(data: bytes, **options: Any) -> dict[int, tuple[int, ...]]:
    """Return (count, sum, self) by function."""
    done = native.account(data, **options)
    return {row[0]: (row[2], row[8], row[9]) for row in done.rows}


NESTED = (
    LogBuilder().thread(1).cpu(0, 0)
    .enter(1, 0).enter(2, 10).exit(2, 5).enter(2, 1).exit(2, 7).exit(1, 2)
    .build()
)  # fmt: skip


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


def test_edges_are_callers_and_callees() -> None:
    done = native.account(NESTED, by="edge")
    assert {(row[1], row[0]): row[2] for row in done.rows} == {(-1, 1): 1, (1, 2): 2}


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


def test_a_thread_is_chosen_by_its_number() -> None:
    report = account(session("mt_pie19.fdr", selection=Selection(threads=[25445])))
    assert report.n_calls == 72
    assert account(session("mt_pie19.fdr")).n_calls == 361


def test_functions_are_chosen_by_globs() -> None:
    report = account(session("mt_pie19.fdr", selection=Selection(functions=["leaf*", "main"])))
    assert {row.name for row in report.rows} == {"leaf(int)", "main"}
    with pytest.raises(EtraceError, match="no function matches nothing"):
        account(session("mt_pie19.fdr", selection=Selection(functions=["nothing"])))


@pytest.mark.parametrize(
    ("text", "ns"), [("1.5ms", 1_500_000), ("3", 3 * 10**9), ("0.25us", 250), ("7ns", 7)]
)
def test_times_have_units(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "1 h", "-1", "1,5ms"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(EtraceError, match="is not a time"):
        parse_time(text)


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


# ---- clocks ----


def test_a_wrong_header_rate_is_replaced_by_the_measured_one() -> None:
    pairs = [(0, 0, 0), (1, 0, 2_700_000_000)]
    clock = choose(3_900_000_000, pairs)
    assert (clock.hz, clock.source) == (2_700_000_000, RateSource.MEASURED)
    assert "3900.000 MHz" in str(clock.warning())
    assert choose(3_900_000_000, pairs, "header").hz == 3_900_000_000
    assert choose(2_710_000_000, pairs).source is RateSource.HEADER
    assert choose(5, pairs, "1e6").hz == 1_000_000


def test_one_bad_clock_of_many_does_not_decide() -> None:
    pairs = [(0, 100_000 * i + (10**9 if i == 7 else 0), 270_000_000 * i) for i in range(20)]
    assert choose(2_700_000_000, pairs).source is RateSource.HEADER
    assert choose(3_900_000_000, pairs).hz == 2_700_000_000


def test_an_emulated_counter_is_nanoseconds() -> None:
    clock = choose(10**9, [(5, 0, 1_700_000_000 * 10**9), (6, 0, 1_700_000_003 * 10**9)])
    assert clock.is_emulated
    assert (clock.hz, clock.warning()) == (10**9, None)


@pytest.mark.parametrize("option", ["0", "-5", "fast", "inf", "nan"])
def test_what_is_no_rate_is_refused(option: str) -> None:
    with pytest.raises(EtraceError, match="not a rate"):
        choose(10**9, [], option)


def test_a_log_without_a_rate_asks_for_one() -> None:
    with pytest.raises(EtraceError, match="no clock rate"):
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


def test_figures_of_functions_of_one_name_are_put_together() -> None:
    few = Figures(2, 1.0, 2.0, 3.0, 4.0, 9.0, 11.0)
    many = Figures(5, 0.5, 6.0, 7.0, 8.0, 8.5, 20.0)
    both = {which: combine([few, many], which) for which in LABELS if which != "none"}
    assert both == {
        "count": 7, "min": 0.5, "med": 6.0, "90p": 7.0, "99p": 8.0, "max": 9.0, "sum": 31.0,
    }  # fmt: skip
