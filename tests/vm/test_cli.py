# SPDX-License-Identifier: Apache-2.0
"""README's way in a guest: `etrace start`, `make`, `etrace stop`, `etrace_parser`.

ETRACE_STRESS=long also has a collector killed, buffers overflow, and sudo's user own the files.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trace_lines
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
LONG = os.environ.get("ETRACE_STRESS") == "long"
SESSION = ("cli_session",) if LONG else ("cli_session", "short")
PROJECT = "/run/etrace-guest/project"


@pytest.fixture
def left(guest: Guest) -> Path:
    guest.phase(*SESSION)
    return guest.work / "cli"


@pytest.mark.phase(*SESSION)
def test_every_step_ends_as_expected(left: Path) -> None:
    steps = [line.split()[:3] for line in (left / "steps").read_text().splitlines()]
    assert [name for name, status, expected in steps if status != expected] == []
    assert {"start", "status", "stop", "parser", "stop-unchanged"} <= {step[0] for step in steps}


@pytest.mark.phase(*SESSION)
def test_the_trace_is_of_what_was_started_after_start(left: Path) -> None:
    trace = trace_lines.parse((left / ".nfsdb").read_bytes())
    assert trace.cwd == PROJECT.encode()
    make = trace.program(b"/usr/bin/make")
    names = trace_lines.name_tasks(trace, make)
    programs = {line.data for line in trace.lines if line.upid in names}
    assert {b"PI|/usr/bin/gcc", b"PI|/usr/bin/ld"} <= {p for p in programs if p[:3] == b"PI|"}


@pytest.mark.phase(*SESSION)
def test_the_parsed_build_made_the_program(left: Path) -> None:
    entries = json.loads((left / ".nfsdb.json").read_bytes())
    written = {file["p"] for entry in entries for file in entry["o"] if file["m"] & 3}
    assert {f"{PROJECT}/hello", f"{PROJECT}/hello.o"} <= written
    (compiler,) = (entry for entry in entries if entry["b"].endswith("/cc1"))
    read = {file["p"] for file in compiler["o"]}
    assert f"{PROJECT}/hello.c" in read
    assert any(path.endswith("/stddef.h") for path in read)
