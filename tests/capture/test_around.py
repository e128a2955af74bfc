# SPDX-License-Identifier: Apache-2.0
"""The tracer's filter: what goes around it is in the trace all the same, and what it stops."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trace_lines
from backends import Captured, capture, need_root
from event_programs import compiled

CALLS_IN_A_ROUND = 10  # of descriptors.c


def go_around(way: str, folder: Path) -> Captured:
    """Open `folder`/file in one of the ways of around.c under capture: it is in the trace."""
    program = compiled("around", folder)
    (folder / "file").write_text("content\n")
    stats = ["--stats", str(folder / "stats")]
    run = capture([program, way, folder / "file"], folder, options=stats)
    assert (run.status, run.stderr) == (0, b"")
    name = os.fsencode(folder / "file")
    assert opens(run, folder) == [(name, name, int(run.stdout))]
    return run


def opens(run: Captured, folder: Path) -> list[tuple[bytes, bytes, int]]:
    """Return (resolved, original, descriptor) of each open of the file."""
    trace = trace_lines.parse(run.trace.read_bytes())
    return [
        (event.strings["FN"], event.strings["FO"], event.args["fd"])
        for upid in trace_lines.name_tasks(trace, trace.roots()[0])
        for event in trace_lines.events(trace.of(upid))
        if event.tag == "Open" and event.strings["FN"] == os.fsencode(folder / "file")
    ]


@pytest.mark.root
def test_a_file_opened_by_its_handle_is_named(folder: Path) -> None:
    need_root()
    go_around("handle", folder)


def test_an_open_that_a_listener_lets_go_on_is_seen(folder: Path) -> None:
    run = go_around("listener", folder)
    lines = [line.data for line in trace_lines.parse(run.trace.read_bytes()).lines]
    assert b"Close|fd=%d" % int(run.stdout) in lines
    assert json.loads((folder / "stats").read_text())["listeners"] == 1


@pytest.mark.parametrize("way", ["untraced", "clone"])
def test_a_child_that_asks_for_no_tracer_is_traced(way: str, folder: Path) -> None:
    go_around(way, folder)
    assert json.loads((folder / "stats").read_text())["untraced"] == 0


def test_a_close_or_dup_whose_result_is_known_stops_once(folder: Path) -> None:
    """Stops are what the tracer costs."""
    program = compiled("descriptors", folder)
    stops = []
    for rounds in ("10", "110"):
        stats = ["--stats", str(folder / "stats")]
        assert capture([program, rounds], folder, options=stats).status == 0
        stops.append(json.loads((folder / "stats").read_text())["stops"])
    assert stops[1] - stops[0] == 100 * CALLS_IN_A_ROUND
