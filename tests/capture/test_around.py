# SPDX-License-Identifier: Apache-2.0
"""Ways around the tracer's filter: what they open is in the trace all the same."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import trace_lines
from backends import BACKENDS, Backend, Captured, capture, need_root, need_tool

DATA = Path(__file__).resolve().parent.parent / "data"

pytestmark = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "work"
    path.mkdir()
    return path


def go_around(backend: Backend, way: str, folder: Path) -> Captured:
    """Open `folder`/file in one of the ways of around.c under capture."""
    need_tool("gcc", "gcc")
    program = folder.with_name("around")
    subprocess.run(["gcc", "-O1", "-o", program, DATA / "around.c"], check=True)
    (folder / "file").write_text("content\n")
    stats = ["--stats", str(folder / "stats")]
    run = capture(backend, [program, way, folder / "file"], folder, options=stats)
    assert (run.status, run.stderr) == (0, b"")
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
def test_a_file_opened_by_its_handle_is_named(backend: Backend, folder: Path) -> None:
    need_root()
    run = go_around(backend, "handle", folder)
    name = os.fsencode(folder / "file")
    assert opens(run, folder) == [(name, name, int(run.stdout))]


def test_an_open_that_a_listener_lets_go_on_is_seen(backend: Backend, folder: Path) -> None:
    run = go_around(backend, "listener", folder)
    name = os.fsencode(folder / "file")
    assert opens(run, folder) == [(name, name, int(run.stdout))]
    lines = [line.data for line in trace_lines.parse(run.trace.read_bytes()).lines]
    assert b"Close|fd=%d" % int(run.stdout) in lines
    assert json.loads((folder / "stats").read_text())["listeners"] == 1


@pytest.mark.parametrize("way", ["untraced", "clone"])
def test_a_child_that_asks_for_no_tracer_is_traced(
    backend: Backend, way: str, folder: Path
) -> None:
    run = go_around(backend, way, folder)
    name = os.fsencode(folder / "file")
    assert opens(run, folder) == [(name, name, int(run.stdout))]
    assert json.loads((folder / "stats").read_text())["untraced"] == 0
