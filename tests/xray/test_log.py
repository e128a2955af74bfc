# SPDX-License-Identifier: Apache-2.0
"""Bytes to records: every version, the truth of synthetic logs, llvm-xray's YAML of real ones."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xray import samples
from xray.builder import BasicBuilder, LogBuilder, header

from etrace import xray
from etrace.errors import EtraceError
from etrace.xray.log import KINDS, Log, read_bytes
from etrace.xray.source import describe

FULL = ("v1_full", "v1_be", "v1_multiheader", "v2_full", "v3_full", "v4_full", "v5_full")
TRUTH_KINDS = ("enter", "exit", "tail_exit", "enter_args", "custom", "typed")
LLVM_KINDS = {
    "function-enter": "enter",
    "function-exit": "exit",
    "function-tail-exit": "tail-exit",
    "function-enter-arg": "enter-arg",
    "custom-event": "custom-event",
    "typed-event": "typed-event",
}


def cpus_of(log: Log) -> list[int]:
    runs = [*log.cpus, (log.n_records, 0)]
    out = [0] * log.n_records
    for (first, cpu), (end, _) in pairwise(runs):
        out[first:end] = [cpu] * (end - first)
    return out


def by_thread(log: Log) -> dict[int, list[Any]]:
    arguments = defaultdict(list)
    for record, value in log.arguments:
        arguments[record].append(value)
    data = {event.record: event.data.hex() for event in log.events}
    r, cpus = log.records, cpus_of(log)
    found: dict[int, list[Any]] = defaultdict(list)
    for thread in log.threads:
        for i in range(thread.first_record, thread.first_record + thread.n_records):
            row = (TRUTH_KINDS[r["kind"][i]], r["function"][i], r["tsc"][i], cpus[i])
            found[thread.thread].append((*row, arguments[i], data.get(i, "")))
    return found


@pytest.mark.parametrize("name", FULL)
def test_synthetic_logs_say_what_their_truth_says(name: str) -> None:
    wanted = defaultdict(list)
    for e in samples.truth(name)["events"]:
        row = (e["kind"], e.get("func_id", 0), e["tsc"], e["cpu"])
        wanted[e["tid"]].append((*row, e.get("args", []), e.get("data", "")))
    log = read_bytes(samples.synthetic(name))
    assert by_thread(log) == wanted
    assert log.damage.problems == []
    assert log.version == samples.truth(name)["version"]


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_real_logs_have_the_records_that_llvm_xray_prints(name: str) -> None:
    log = xray.read(samples.log(name))
    r, cpus = log.records, cpus_of(log)
    arguments = defaultdict(list)
    for record, value in log.arguments:
        arguments[record].append(str(value))
    threads = {
        i: t for t in log.threads for i in range(t.first_record, t.first_record + t.n_records)
    }
    got = sorted(
        (r["tsc"][i], threads[i].thread, threads[i].process, KINDS[r["kind"][i]],
         r["function"][i] if r["kind"][i] < 4 else 0, cpus[i], ", ".join(arguments[i]))
        for i in range(log.n_records)
    )  # fmt: skip
    wanted = sorted(
        (int(row["tsc"]), int(row["thread"]), int(row["process"]), LLVM_KINDS[row["kind"]],
         # llvm-xray shows the function of the record before with an event
         int(row["function"]) if "event" not in row["kind"] else 0,
         int(row["cpu"]), row["args"])
        for row in samples.yaml_records(samples.oracle(f"{name}.yaml"))
    )  # fmt: skip
    assert got == wanted
    assert log.damage.n_problems == 0


def test_dso_numbers_are_bits_24_and_above() -> None:
    log = read_bytes(samples.synthetic("v5_dso"))
    ids = dict.fromkeys(log.records["function"])
    assert [[f >> 24, f & 0xFFFFFF] for f in ids] == samples.truth("v5_dso")["ids"]


def test_junk_between_buffers_is_skipped_and_reported() -> None:
    log = read_bytes(samples.synthetic("v5_resync"), "r.xray")
    assert [t.thread for t in log.threads] == [1, 2]
    assert list(describe(log.damage, "r.xray")) == [
        "r.xray: offset 128: bytes between buffers; 15 bytes skipped"
    ]


def test_a_record_of_unknown_kind_costs_itself_only() -> None:
    log = read_bytes(samples.synthetic("bad_unknown_metadata"), "b")
    assert list(describe(log.damage, "b")) == [
        "b: offset 80: metadata record of unknown kind 63; 16 bytes skipped"
    ]
    assert log.damage.is_lossy


@pytest.mark.parametrize("name", ["header_only_v5", "basic_header_only"])
def test_a_log_of_nothing_is_valid(name: str) -> None:
    log = read_bytes(samples.synthetic(name))
    assert (log.n_records, log.threads, log.damage.n_problems) == (0, (), 0)


def test_basic_logs_are_sorted_by_thread_and_keep_arguments() -> None:
    data = (
        BasicBuilder()
        .call(0, 1, 10, thread=1)
        .call(0, 5, 11, thread=2, cpu=3)
        .call(3, 2, 20, thread=1)
        .argument(2, 99, thread=1)
        .argument(2, 100, thread=1)
        .call(1, 5, 30, thread=2, cpu=3)
        .build()
    )
    log = read_bytes(data)
    assert [(t.thread, t.n_records) for t in log.threads] == [(1, 2), (2, 2)]
    assert list(log.records["tsc"]) == [10, 20, 11, 30]
    assert log.arguments == [(1, 99), (1, 100)]
    assert cpus_of(log) == [0, 0, 3, 3]


@pytest.mark.parametrize("name", samples.PROGRAMS)
def test_basic_and_recorder_logs_of_a_program_have_the_same_calls(name: str) -> None:
    fdr, basic = (xray.read(samples.log(f"{name}.{mode}")) for mode in ("fdr", "basic"))

    def counts(log: Log) -> dict[int, int]:
        found: dict[int, int] = defaultdict(int)
        for function in log.calls()["function"]:
            found[function] += 1
        return found

    assert counts(fdr) == counts(basic)


def test_an_argument_after_another_function_is_reported() -> None:
    log = read_bytes(BasicBuilder().call(0, 1, 10).argument(7, 1).raw(b"abc").build(), "l")
    assert [p[0] for p in log.damage.problems] == ["stray-argument", "trailing-bytes"]


def test_arguments_of_threads_that_call_nothing_are_reported() -> None:
    builder = BasicBuilder().call(0, 1, 10, thread=1)
    for thread in range(2, 200):
        builder.argument(1, thread, thread=thread).argument(1, thread, thread=thread)
    log = read_bytes(builder.build())
    assert {p[0] for p in log.damage.problems} == {"stray-argument"}
    assert (log.damage.n_problems, len(log.threads), log.arguments) == (396, 1, [])


@pytest.mark.parametrize("action", [4, 7])
def test_an_unknown_action_is_skipped_but_its_time_passes(action: int) -> None:
    log = read_bytes(
        LogBuilder().thread(1).cpu(0, 100).enter(1, 1).function(action, 9, 5).exit(1, 2).build()
    )
    assert list(log.records["tsc"]) == [101, 108]
    assert [p[0] for p in log.damage.problems] == ["unknown-action"]


def test_garbage_costs_the_rest_of_its_buffer_and_no_other() -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 100).enter(1, 1).raw(b"\xff" * 40)
        .thread(2).cpu(0, 100).enter(2, 1).build()
    )  # fmt: skip
    log = read_bytes(data)
    assert list(log.records["function"]) == [1, 2]
    assert [(p[0], p[2]) for p in log.damage.problems] == [("unknown-kind", 40)]


def test_a_cut_log_keeps_what_is_whole() -> None:
    data = LogBuilder().thread(1).cpu(0, 100).enter(1, 1).enter(2, 1).build()
    log = read_bytes(data[:-3])
    assert list(log.records["function"]) == [1]
    kinds = sorted(p[0] for p in log.damage.problems)
    assert kinds == ["buffer-cut-off", "record-cut-off"]
    assert log.damage.is_lossy


def test_an_argument_belongs_to_a_call_of_its_own_buffer() -> None:
    builder = LogBuilder().thread(1, wall_us=1).cpu(0, 100).enter(1, 1)
    builder.thread(2, wall_us=2).argument(7).cpu(0, 100).enter(2, 1).argument(8).custom(b"x", 1)
    log = read_bytes(builder.argument(9).enter(3, 1).build())
    assert log.arguments == [(1, 8)]
    assert [KINDS[kind] for kind in log.records["kind"]] == [
        "enter", "enter-arg", "custom-event", "enter",
    ]  # fmt: skip
    assert [p[0] for p in log.damage.problems] == ["stray-argument"] * 2


@pytest.mark.parametrize("name", ["v1_full", "v1_be", "v2_full", "v5_full"])
def test_a_log_that_is_cut_anywhere_mentions_it(name: str) -> None:
    """But where a buffer ends: nothing says that there was another one."""
    data = samples.synthetic(name)
    whole = read_bytes(data)
    ends = {32} | {block[0] - (0 if whole.version == 1 else 16) for block in whole.raw.blocks}
    for end in range(33, len(data)):
        log = read_bytes(data[:end])
        assert log.damage.is_lossy or log.n_records == whole.n_records or end in ends, end


def test_a_typed_event_that_its_writer_did_not_count_costs_the_tail_only() -> None:
    """LLVM 8 to 19 leave out 16 bytes of each typed event's size in the extents."""
    whole = LogBuilder().thread(1).cpu(0, 100).typed(b"abcdef", 3, 5).enter(1, 1).exit(1, 1)
    data = bytearray(whole.build())
    extents = int.from_bytes(data[33:41], "little")
    data[33:41] = (extents - 16).to_bytes(8, "little")
    log = read_bytes(bytes(data[: 48 + extents - 16]))
    assert [e.data for e in log.events] == [b"abcdef"]
    assert log.damage.n_problems <= 1


def test_an_empty_event_is_valid() -> None:
    log = read_bytes(LogBuilder().thread(1).cpu(0, 100).custom(b"", 5).enter(1, 1).build())
    assert [(e.data, e.type) for e in log.events] == [(b"", 0)]
    assert list(log.records["tsc"]) == [105, 106]
    assert log.damage.n_problems == 0


def test_events_before_version_5_leave_the_time_alone() -> None:
    log = read_bytes(LogBuilder(3).thread(1).cpu(0, 100).custom(b"x", 900).enter(1, 1).build())
    assert list(log.records["tsc"]) == [900, 101]


def test_buffers_of_a_thread_are_ordered_by_time() -> None:
    data = (
        LogBuilder().thread(1, wall_us=50).cpu(0, 500).exit(1, 0)
        .thread(2, wall_us=1).cpu(0, 10).enter(9, 0)
        .thread(1, wall_us=3).cpu(0, 100).enter(1, 0).build()
    )  # fmt: skip
    log = read_bytes(data)
    assert list(log.records["tsc"]) == [100, 500, 10]
    assert list(log.calls()["ticks"])[:1] == [400]


def test_a_version_1_buffer_without_a_cpu_goes_on_where_its_thread_was() -> None:
    data = (
        LogBuilder(1).thread(1, wall_us=1).cpu(3, 100).enter(1, 5)
        .thread(1, wall_us=2).exit(1, 7).build()
    )  # fmt: skip
    log = read_bytes(data)
    assert list(log.records["tsc"]) == [105, 112]
    assert cpus_of(log) == [3, 3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file ends inside the 32-byte header \\(0 bytes\\)"),
        (samples.synthetic("bad_truncated_header"), "\\(20 bytes\\)"),
        (header(6), "version 6, type 1 \\(bytes 06 00 01 00\\)"),
        (header(1, kind=7), "version 1, type 7"),
        (header(4, kind=0), "version 4, type 0"),
        (b"forpyarx" + bytes(40), "profiling mode"),
        (b"---\nheader:\n  version: 5" + bytes(20), "version 11565"),
    ],
)
def test_what_is_no_log_is_named(data: bytes, message: str) -> None:
    with pytest.raises(EtraceError, match=message):
        read_bytes(data, "some.xray")


def test_columns_are_not_copies_and_outlive_the_log(tmp_path: Path) -> None:
    column = xray.read(samples.log("tail_pie19.fdr")).records["tsc"]
    assert column.format == "Q"
    assert column[0] == min(column)


# ---- round trips and damage ----

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("function"), st.integers(0, 2), st.integers(1, 2**28 - 1),
                  st.integers(0, 2**32 - 1)),
        st.tuples(st.just("cpu"), st.integers(0, 65535), st.integers(0, 2**62)),
        st.tuples(st.just("wrap"), st.integers(0, 2**62)),
        st.tuples(st.just("custom"), st.binary(max_size=40), st.integers(0, 2**31 - 1)),
    ),
    max_size=30,
)  # fmt: skip


def play(version: int, big: bool, steps: list[Any]) -> tuple[bytes, list[Any]]:
    """Build a log and say what its records must be."""
    builder = LogBuilder(version, big=big, buffer_bytes=8192).thread(77).cpu(1, 1000)
    tsc, wanted = 1000, []
    for name, *values in steps:
        getattr(builder, name)(*values)
        if name == "function":
            tsc += values[2]
            wanted.append((values[0], values[1], tsc % 2**64))
        elif name == "cpu":
            tsc = values[1]
        elif name == "wrap":
            tsc = values[0]
        elif version >= 5:
            tsc += values[1]
            wanted.append((4, 0, tsc))
        else:
            wanted.append((4, 0, values[1]))
    return builder.build(), wanted


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 5), st.booleans(), STEPS)
def test_what_a_writer_writes_is_read(version: int, big: bool, steps: list[Any]) -> None:
    data, wanted = play(version, big and version == 1, steps)
    log = read_bytes(data)
    r = log.records
    assert list(zip(r["kind"], r["function"], r["tsc"], strict=True)) == wanted
    assert not log.damage.is_lossy


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 5), STEPS, st.data())
def test_damage_never_stops_the_reader(version: int, steps: list[Any], draw: st.DataObject) -> None:
    data = bytearray(play(version, False, steps)[0])
    for _ in range(draw.draw(st.integers(1, 8))):
        data[draw.draw(st.integers(32, len(data) - 1))] = draw.draw(st.integers(0, 255))
    end = draw.draw(st.integers(32, len(data)))
    log = read_bytes(bytes(data[:end]))
    calls = log.calls()
    assert log.n_records <= len(data) // 8
    assert len(calls["start"]) <= log.n_records
    assert sum(t.n_records for t in log.threads) == log.n_records
    list(describe(log.damage, "x"))
    assert all(event.record < log.n_records for event in log.events)


BASIC_CALLS = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**64 - 1),
        st.integers(1, 5), st.integers(0, 255),
    ),
    max_size=40,
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 3), BASIC_CALLS)
def test_what_a_basic_writer_writes_is_read(version: int, calls: list[Any]) -> None:
    builder = BasicBuilder(version)
    wanted = defaultdict(list)
    for kind, function, tsc, thread, cpu in calls:
        builder.call(kind, function, tsc, thread=thread, cpu=cpu)
        wanted[thread].append((kind, function % 2**32, tsc, cpu))
    log = read_bytes(builder.build())
    columns = (log.records[name] for name in ("kind", "function", "tsc"))
    rows = list(zip(*columns, cpus_of(log), strict=True))
    got = {t.thread: rows[t.first_record : t.first_record + t.n_records] for t in log.threads}
    assert got == wanted
    assert not log.damage.n_problems


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 3), BASIC_CALLS, st.data())
def test_damage_never_stops_the_basic_reader(
    version: int, calls: list[Any], draw: st.DataObject
) -> None:
    builder = BasicBuilder(version)
    for kind, function, tsc, thread, cpu in calls:
        builder.call(kind, function, tsc, thread=thread, cpu=cpu).argument(function, tsc)
    data = bytearray(builder.build())
    for _ in range(draw.draw(st.integers(0, 8)) if calls else 0):
        data[draw.draw(st.integers(32, len(data) - 1))] = draw.draw(st.integers(0, 255))
    log = read_bytes(bytes(data[: draw.draw(st.integers(32, len(data)))]))
    assert log.n_records <= len(data) // 32
    assert sum(t.n_records for t in log.threads) == log.n_records
    assert len(log.calls()["start"]) <= log.n_records
