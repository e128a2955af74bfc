# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events traced by the module: the lines are those that the programs say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import trace_lines
from event_programs import head_value, programs
from vm.machine import complaints
from vm.rig import Guest, must_exist, numbers, source_of

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
PIPE = ("events", "pipe")
COLLECTOR = ("events", "collector")
PROGRAMS = b"/run/etrace-events/programs/"


@cache
def session(folder: Path, name: str) -> tuple[trace_lines.Trace, dict[str, int]]:
    """Read the trace of one session, which is of several programs, and its counters."""
    text = (folder / f"{name}.trace").read_bytes()
    head = b"" if text.startswith(b"INITCWD=") else b"INITCWD=/\n"  # etrace_cat writes it
    trace = trace_lines.parse(head + text)
    counts = numbers(folder / f"{name}.counters")
    trace_lines.check_stamps(trace, counts["started_ns"], counts["ended_ns"])
    return trace, counts


def of_program(trace: trace_lines.Trace, path: bytes) -> trace_lines.Trace:
    """Return the lines of the task that began with `path`, its descendants and their variables."""
    first: dict[int, bytes] = {}
    for line in trace.lines:
        if line.data.startswith(b"PI|"):
            first.setdefault(line.upid, line.data)
    root = next(upid for upid, data in first.items() if data == b"PI|" + path)
    names = trace_lines.name_tasks(trace, root)
    kept = []
    wanted = False
    for line in trace.lines:
        if line.upid == 0 and line.data.startswith(b"UPID|"):
            wanted = int(line.data.removeprefix(b"UPID|")) in names
        if line.upid in names or (line.upid == 0 and wanted):
            kept.append(line)
    return trace_lines.Trace(trace.cwd, kept)


def check(guest: Guest, folder: Path, program: str) -> None:
    """Compare what one program said with its session's trace."""
    must_exist(guest, program)
    name = program.replace("/", "-")
    options = head_value(source_of(program), "options")
    whole, counts = session(folder, "session" + options.replace(" ", "-"))
    assert (folder / f"{name}.stderr").read_text() == ""
    printed = (folder / f"{name}.expected").read_bytes()
    path = PROGRAMS + program.encode()
    trace = of_program(whole, path)
    diff = trace_lines.compare_run(printed, trace, path, has_written=False)
    if diff:
        pytest.fail(diff, pytrace=False)
    status = numbers(folder / f"{name}.status")["exit"]
    assert b"Exit|status=%d" % status in [line.data for line in trace.lines]
    assert [counts[n] for n in ("lost_events", "lost_records", "live", "untracked")] == [0] * 4


@pytest.mark.phase(*PIPE)
@pytest.mark.parametrize("program", programs())
def test_trace_pipe_prints_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    guest.phase(*PIPE)
    check(guest, guest.work / "out/pipe", program)


@pytest.mark.phase(*COLLECTOR)
@pytest.mark.parametrize("program", programs())
def test_etrace_cat_writes_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    guest.phase(*COLLECTOR)
    check(guest, guest.work / "out/collector", program)


@pytest.mark.phase(*PIPE)
@pytest.mark.phase(*COLLECTOR)
def test_every_function_could_be_probed(guest: Guest) -> None:
    assert "cannot be probed" not in guest.console(*PIPE) + guest.console(*COLLECTOR)


@pytest.mark.phase(*PIPE)
@pytest.mark.phase(*COLLECTOR)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*PIPE) + guest.console(*COLLECTOR)) == []
