# SPDX-License-Identifier: Apache-2.0
"""Other tools' formats: valid, complete, and equal to what llvm-xray prints where that is right."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from xray import samples
from xray.builder import LogBuilder

from etrace.xray.convert import FORMATS, Options, write
from etrace.xray.convert.records import yaml_string
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Selection, Session
from etrace.xray.stacks import DEEPER, MAX_FOLDED, stacks


def convert(name: str, to: str, **options: Any) -> bytes:
    names = Names(read_maps([str(samples.program(name))]))
    stream = io.BytesIO()
    write(Session([str(samples.log(name))], names), stream, Options(to, **options))
    return stream.getvalue()


def convert_bytes(data: bytes, to: str, tmp_path: Any, **options: Any) -> bytes:
    path = tmp_path / "a.xray"
    path.write_bytes(data)
    stream = io.BytesIO()
    write(Session([str(path)], **options), stream, Options(to))
    return stream.getvalue()


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_yaml_is_that_of_llvm_xray(name: str) -> None:
    """But for the function that llvm-xray shows with an event: that of the record before."""

    def without_events(text: str) -> list[dict[str, str]]:
        rows = samples.yaml_records(text)
        return [
            row | ({"function": "", "name": ""} if "event" in row["kind"] else {}) for row in rows
        ]

    ours, llvm = convert(name, "yaml").decode(), samples.oracle(f"{name}.yaml")
    assert ours.splitlines()[:7] == llvm.splitlines()[:7]
    key = lambda row: (int(row["tsc"]), row["thread"], row["kind"], row["function"])  # noqa: E731
    assert sorted(without_events(ours), key=key) == sorted(without_events(llvm), key=key)


def chrome_spans(text: str) -> list[tuple[str, int, int, float, float]]:
    """Turn llvm-xray's begin and end events into spans, relative to the first."""
    events = json.loads(text)["traceEvents"]
    first = min(float(e["ts"]) for e in events)
    stacks: dict[str, list[tuple[str, float]]] = {}
    spans = []
    for e in events:
        stack = stacks.setdefault(e["tid"], [])
        if e["ph"] == "B":
            stack.append((e["name"], float(e["ts"])))
        else:
            name, start = stack.pop()
            spans.append(
                (name, int(e["pid"]), int(e["tid"]), start - first, float(e["ts"]) - start)
            )
    return sorted(spans, key=lambda s: (s[2], s[3], -s[4]))


@pytest.mark.parametrize("name", ["ev_pie19.fdr", "rec_nopie19.fdr", "tail_pie19.fdr"])
def test_chrome_spans_are_those_of_llvm_xray(name: str) -> None:
    """The logs of mt have a name with quotes, which llvm-xray does not escape."""
    wanted = chrome_spans(samples.oracle(f"{name}.trace"))
    events = json.loads(convert(name, "chrome"))["traceEvents"]
    got = sorted(
        [(e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"],
        key=lambda s: (s[2], s[3], -s[4]),
    )
    assert [row[:3] for row in got] == [row[:3] for row in wanted]
    for ours, llvm in zip(got, wanted, strict=True):
        assert ours[3:] == pytest.approx(llvm[3:], abs=0.002)


def test_chrome_has_numbers_names_arguments_and_events() -> None:
    events = json.loads(convert("ev_pie19.fdr", "chrome"))["traceEvents"]
    assert all(type(e["pid"]) is int and type(e["tid"]) is int for e in events)
    assert {e["ph"] for e in events} == {"M", "X", "i"}
    logged = [e for e in events if e["name"] == "logged(long)"]
    assert logged[0]["args"]["arguments"] == ["0"]
    instants = [e["args"]["data"] for e in events if e["ph"] == "i"]
    assert instants[0] == "req=0;path=/a/b"


def test_names_with_quotes_are_valid_everywhere() -> None:
    for to in ("json", "chrome", "speedscope"):
        assert 'operator\\"\\" _km' in convert("mt_pie19.fdr", to).decode()
        json.loads(convert("mt_pie19.fdr", to))


def test_json_lines_and_csv_have_every_record() -> None:
    lines = [json.loads(line) for line in convert("ev_pie19.fdr", "jsonl").splitlines()]
    rows = list(csv.DictReader(io.StringIO(convert("ev_pie19.fdr", "csv").decode())))
    document = json.loads(convert("ev_pie19.fdr", "json"))
    assert document["records"] == lines
    assert len(lines) == len(rows) == 70
    assert [str(line["tsc"]) for line in lines] == [row["tsc"] for row in rows]
    assert lines[0]["time_ns"] == 0
    assert [line["tsc"] for line in lines] == sorted(line["tsc"] for line in lines)


def test_folded_stacks_add_up_to_the_roots() -> None:
    lines = convert("rec_nopie19.fdr", "folded").decode().splitlines()
    assert all(line.rpartition(" ")[2].isdigit() and ";;" not in line for line in lines)
    total = sum(int(line.rpartition(" ")[2]) for line in lines)
    main = next(e for e in json.loads(convert("rec_nopie19.fdr", "chrome"))["traceEvents"]
                if e["name"] == "main" and e["ph"] == "X")  # fmt: skip
    assert total == pytest.approx(main["dur"] * 1000, rel=1e-4)


def check_speedscope(document: Any) -> None:
    """Check what speedscope checks: events nest, and time does not go back."""
    for profile in document["profiles"]:
        stack, now = [], profile["startValue"]
        for event in profile["events"]:
            assert event["at"] >= now
            now = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
        assert now == profile["endValue"]


@pytest.mark.parametrize("name", samples.FDR_LOGS)
def test_speedscope_profiles_nest(name: str) -> None:
    document = json.loads(convert(name, "speedscope"))
    check_speedscope(document)
    n_calls = sum(len(p["events"]) for p in document["profiles"]) // 2
    assert n_calls == len([r for r in samples.yaml_records(samples.oracle(f"{name}.yaml"))
                           if r["kind"].startswith("function-enter")])  # fmt: skip


def test_damaged_calls_still_nest(tmp_path: Any) -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 100).enter(1, 0).enter(2, 5).cpu(1, 50).exit(1, 1)
        .enter(3, 1).build()
    )  # fmt: skip
    check_speedscope(json.loads(convert_bytes(data, "speedscope", tmp_path)))
    events = json.loads(convert_bytes(data, "chrome", tmp_path))["traceEvents"]
    assert {e["args"].get("ended_by") for e in events if e["ph"] == "X"} == {
        None, "caller", "end-of-log",
    }  # fmt: skip


def test_payloads_of_any_bytes_are_valid_text(tmp_path: Any) -> None:
    payload = bytes(range(256))
    data = LogBuilder().thread(1).cpu(0, 1).custom(payload, 1).build()
    for to in sorted(set(FORMATS) - {"parquet"}):
        text = convert_bytes(data, to, tmp_path).decode()
        assert "\0" not in text
        if to in ("json", "chrome", "speedscope"):
            json.loads(text)
            assert "\\ud" not in text  # half of a surrogate pair: strict parsers refuse it


def test_yaml_words_and_signs_are_text() -> None:
    shown = {
        "main": "main", "on": "'on'", "No": "'No'", "a'b": "'a''b'", "\0": '"\\U00000000"',
        '"\x7f\N{GRINNING FACE}': '"\\"\\U0000007F\N{GRINNING FACE}"',
    }  # fmt: skip
    assert {text: yaml_string(text) for text in shown} == shown


def test_a_shortest_duration_holds_for_records(tmp_path: Any) -> None:
    data = (
        LogBuilder().thread(1).cpu(0, 100).exit(8, 0).enter(1, 0).enter(2, 1).exit(2, 1)
        .custom(b"x", 1).enter(2, 1).enter(3, 1).exit(2, 50).enter(4, 1).build()
    )  # fmt: skip
    selection = Selection(shortest_ns=20)
    lines = convert_bytes(data, "jsonl", tmp_path, selection=selection).splitlines()
    rows = [json.loads(line) for line in lines]
    kept = [(row["kind"], row.get("function_id")) for row in rows]
    assert kept == [
        ("enter", 1), ("custom-event", None), ("enter", 2), ("enter", 3), ("exit", 2),
    ]  # fmt: skip
    chrome = json.loads(convert_bytes(data, "chrome", tmp_path, selection=selection))
    calls = [event["args"]["id"] for event in chrome["traceEvents"] if event["ph"] == "X"]
    assert calls == [function for kind, function in kept if kind == "enter"]


def test_arguments_and_events_stay_with_their_threads(tmp_path: Any) -> None:
    builder = LogBuilder()
    for thread in (5, 3, 9):
        builder.thread(thread).cpu(thread, 10).function(3, 1, 0).argument(thread).exit(1, 1)
        builder.custom(b"%d" % thread, 1)
    data = builder.build()
    events = json.loads(convert_bytes(data, "chrome", tmp_path))["traceEvents"]
    found = {e["tid"]: e["args"] for e in events if e["ph"] == "X"}
    assert {tid: args["arguments"] for tid, args in found.items()} == {5: ["5"], 3: ["3"], 9: ["9"]}
    assert {e["tid"]: e["args"]["data"] for e in events if e["ph"] == "i"} == {
        5: "5", 3: "3", 9: "9",
    }  # fmt: skip
    lines = [json.loads(line) for line in convert_bytes(data, "jsonl", tmp_path).splitlines()]
    assert {row["cpu"] for row in lines if row["thread"] == 9} == {9}
    assert all(row["arguments"] == [row["thread"]] for row in lines if row["kind"] == "enter-arg")


def test_a_parquet_file_has_the_calls(tmp_path: Any) -> None:
    path = tmp_path / "calls.parquet"
    path.write_bytes(convert("tail_pie19.fdr", "parquet"))
    table = pq.read_table(path).to_pylist()
    assert len(table) == 23
    assert table[0]["function"] == "main"
    assert {row["parent"] for row in table if row["function"] == "main"} == {-1}


def test_folded_lines_of_a_deep_recursion_stay_short(tmp_path: Any) -> None:
    """A line for each of 5,000 depths would be 40 MB; all of the time is there nevertheless."""
    depth = 5_000
    log = LogBuilder().thread(1).cpu(0, 0)
    for _ in range(depth):
        log.enter(1, 1)
    for _ in range(depth):
        log.exit(1, 1)
    path = tmp_path / "deep.xray"
    path.write_bytes(log.build())
    found = stacks(Session([str(path)], hz="1000000000"))
    lines = [line.rpartition(" ") for line in found.folded("self")]
    assert len(lines) == MAX_FOLDED + 1
    assert max(names.count(";") for names, _, _ in lines) == MAX_FOLDED
    assert lines[-1][0].endswith(f";{DEEPER}")
    assert sum(int(value) for _, _, value in lines) == 2 * depth - 1
    counted = [line.rpartition(" ")[2] for line in found.folded("count")]
    assert counted == ["1"] * MAX_FOLDED + [str(depth - MAX_FOLDED)]
