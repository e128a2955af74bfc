# SPDX-License-Identifier: Apache-2.0
"""What is written for viewers, read back: Chrome's JSON, Perfetto's packets by its own messages."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from databases import database_of, write_processed_lua
from libetrace.image.file import Image
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
from terminal import Terminal
from timing.builds import US, a_pipeline

from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.timeline import chrome, perfetto
from etrace.timeline.counters import counters
from etrace.timeline.slices import Lanes, Slice, slices


def written(image: Image, lanes: Lanes = Lanes.TREE) -> Any:
    """Return the packets of a Perfetto trace."""
    stream = io.BytesIO()
    perfetto.write(stream, slices(image, lanes), counters(image))
    trace = protos.Trace()
    trace.ParseFromString(stream.getvalue())
    return trace.packet


def read_slices(packets: Any) -> list[tuple[str, str, int, int, int]]:
    """Return (lane, name, depth, begin, length) of the slices, as a viewer nests them."""
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in packets}
    event, open_on = protos.TrackEvent, dict[int, list[int]]()
    found: list[tuple[str, str, int, int, int]] = []
    in_time = sorted((p for p in packets if p.HasField("track_event")), key=lambda p: p.timestamp)
    for packet in in_time:
        it = packet.track_event
        stack = open_on.setdefault(it.track_uuid, [])
        if it.type == event.TYPE_SLICE_BEGIN:
            stack.append(len(found))
            found.append((names[it.track_uuid], it.name, len(stack) - 1, packet.timestamp, -1))
        elif it.type == event.TYPE_SLICE_END:
            at = stack.pop()
            found[at] = (*found[at][:4], packet.timestamp - found[at][3])
    assert not any(open_on.values())
    return found


def test_perfetto_reads_names_nesting_and_durations(tmp_path: Path) -> None:
    packets = written(database_of(tmp_path, a_pipeline()))
    assert read_slices(packets) == [
        ("lane 1", "sh -c gen | sort", 0, 0, 820 * US),
        ("lane 1", "gen", 1, 100 * US, 600 * US),
        ("lane 2", "sort", 0, 110 * US, 690 * US),
    ]
    tracks = [p.track_descriptor for p in packets if p.HasField("track_descriptor")]
    assert [(t.name, t.parent_uuid) for t in tracks] == [
        ("build", 0), ("running commands", 1), ("lane 1", 1), ("lane 2", 1),
    ]  # fmt: skip
    values = [
        (p.timestamp, p.track_event.double_counter_value)
        for p in packets
        if p.track_event.type == protos.TrackEvent.TYPE_COUNTER
    ]
    assert values == [(100 * US, 1), (110 * US, 2), (700 * US, 1), (800 * US, 0)]


def test_a_real_build_nests_cc1_in_gcc_in_make(tmp_path: Path) -> None:
    image = open_database(write_processed_lua(tmp_path / "lua"))
    found = read_slices(written(image))
    depth = {name: depth for _, name, depth, _, _ in found}
    assert {"make all", "gcc lvm.c", "cc1 lvm.c", "ld lua"} <= depth.keys()
    assert depth["cc1 lvm.c"] == depth["gcc lvm.c"] + 1
    executions = image["executions"]
    assert {length for _, _, _, _, length in found} <= set(executions["elapsed_ns"])
    lanes = {lane for lane, *_ in read_slices(written(image, Lanes.PACKED))}
    assert lanes == {"lane 1", "lane 2"}  # make -j2


def test_chrome_reads_the_same(tmp_path: Path) -> None:
    image, stream = database_of(tmp_path, a_pipeline()), io.BytesIO()
    chrome.write(stream, slices(image, Lanes.TREE), counters(image))
    events = json.loads(stream.getvalue())["traceEvents"]
    assert [e for e in events if e["ph"] == "X"] == [
        {"ph": "X", "name": name, "cat": "execution", "pid": 1, "tid": tid, "ts": ts, "dur": dur,
         "args": {"command": command, "pid": pid}}
        for name, tid, ts, dur, command, pid in [
            ("sh -c gen | sort", 1, 0, 820, "sh -c gen | sort", 1),
            ("gen", 1, 100, 600, "gen", 2),
            ("sort", 2, 110, 690, "sort", 3),
        ]
    ]  # fmt: skip
    running = [(e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C"]
    assert running == [(100, 1), (110, 2), (700, 1), (800, 0)]


def test_bytes_of_any_kind_can_be_written() -> None:
    odd = [Slice(0, 0, 1, "cat \udcff", "execution", (("command", "\udcff"), ("pid", 2)))]
    for writer in (chrome, perfetto):
        stream = io.BytesIO()
        writer.write(stream, odd, [])
        assert b"udcff" in stream.getvalue()


def test_without_the_package_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(EtraceError, match="needs the package perfetto") as caught:
        perfetto.write(io.BytesIO(), [], [])
    assert "pip install perfetto" in caught.value.hint


@pytest.mark.parametrize(("form", "name"), [("chrome", "timeline.json"), ("html", "timeline.html")])
def test_a_terminal_is_reported_a_file(tmp_path: Path, form: str, name: str) -> None:
    database_of(tmp_path, a_pipeline())
    command = [str(Path(sys.executable).with_name("etrace")), "timeline", "--to", form]
    with Terminal(command, tmp_path, dict(os.environ)) as terminal:
        terminal.wait_for(rf"etrace: the timeline is {name} \(.*\); open it in ")
        assert '"ph"' not in terminal.log
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert piped.stdout == (tmp_path / name).read_bytes()
