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
from collect.collector import decompressed
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


# --- what only make test-stress does: cli_session.sh without `short` ---

ALL = ("cli_session",)


def trace_of(guest: Guest, name: str) -> trace_lines.Trace:
    guest.phase(*ALL)
    return trace_lines.parse((guest.work / "cli" / name).read_bytes())


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_a_control_group_is_traced_and_nothing_else(guest: Guest) -> None:
    trace = trace_of(guest, "group.nfsdb")
    opened = [line.data for line in trace.lines if line.data.startswith(b"FN|")]
    assert f"FN|{PROJECT}/inside".encode() in opened
    assert f"FN|{PROJECT}/outside".encode() not in opened


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_an_open_that_is_repeated_is_left_out_and_counted(guest: Guest) -> None:
    trace = trace_of(guest, "group.nfsdb")
    opened = [line.data for line in trace.lines]
    assert opened.count(f"FN|{PROJECT}/inside".encode()) == 1
    stats = json.loads((guest.work / "cli/group.nfsdb.stats").read_bytes())
    assert stats["kernel"]["suppressed_opens"] >= 2
    assert stats["lost"] == 0


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_a_user_traces_through_sudo_what_the_own_shell_starts(guest: Guest) -> None:
    guest.phase(*ALL)
    left = guest.work / "cli"
    trace = trace_lines.parse(decompressed(left / "user.nfsdb.zst"))
    assert trace.cwd == b"/run/etrace-guest/user"
    opened = [line.data for line in trace.lines if line.data.startswith(b"FN|")]
    assert f"FN|{PROJECT}/hello.c".encode() in opened
    assert b"FN|/run/etrace-guest/user/copy" in opened
    owners = [line.split()[2:4] for line in (left / "user.ls").read_text().splitlines()[1:]]
    assert all(owner == ["65534", "65534"] for owner in owners[:1] + owners[2:])
