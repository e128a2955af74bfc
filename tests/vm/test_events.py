# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events traced by the module: the lines are those that the programs say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trace_lines
from event_programs import programs
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(3000)]
PIPE = ("events", "pipe", "programs.list", "out/pipe")
COLLECTOR = ("events", "collector", "programs.list", "out/collector")


def check(guest: Guest, folder: Path, program: str, head: bytes) -> None:
    """Compare what one program said with its trace."""
    name = program.replace("/", "-")
    assert (folder / f"{name}.stderr").read_text() == ""
    counts = numbers(folder / f"{name}.counters")
    text = (folder / f"{name}.trace").read_bytes()
    trace = trace_lines.parse(head + text)
    trace_lines.check_stamps(trace, counts["started_ns"], counts["ended_ns"])
    printed = (folder / f"{name}.expected").read_bytes()
    diff = trace_lines.compare_run(printed, trace, os.fsencode(guest.work / "programs" / program))
    if diff:
        pytest.fail(diff, pytrace=False)
    assert b"Exit|status=%d" % counts["exit"] in [line.data for line in trace.lines]
    assert [counts[n] for n in ("lost_events", "lost_records", "live", "untracked")] == [0] * 4


@pytest.mark.phase(*PIPE)
@pytest.mark.parametrize("program", programs())
def test_trace_pipe_prints_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    guest.phase(*PIPE)
    check(guest, guest.work / "out/pipe", program, b"INITCWD=/\n")


@pytest.mark.phase(*COLLECTOR)
@pytest.mark.parametrize("program", programs())
def test_etrace_cat_writes_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    guest.phase(*COLLECTOR)
    check(guest, guest.work / "out/collector", program, b"")


@pytest.mark.phase(*PIPE)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.ran.console) == []
