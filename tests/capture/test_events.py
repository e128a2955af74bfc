# SPDX-License-Identifier: Apache-2.0
"""Every program of tests/events under ptrace: the lines are those that the program says."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
import trace_lines
from backends import PTRACE, Backend, capture, need_root
from event_programs import SOURCES, check_warnings, head_value, programs

NOBODY = 65534


def check(
    program: Path, folder: Path, *, backend: Backend = PTRACE, user: int | None = None
) -> None:
    """Run one program under capture and compare what it said with what was captured."""
    source = SOURCES / f"{program.name}.c"
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    options = head_value(source, "options").split()
    run = capture([program], folder, options=options, user=user, backend=backend)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    check_warnings(source, run.stderr)
    trace = trace_lines.parse(run.trace.read_bytes())
    assert trace.cwd == os.fsencode(folder)
    trace_lines.check_stamps(trace, start_ns, end_ns)
    diff = trace_lines.compare_run(run.stdout, trace, os.fsencode(program))
    if diff:
        pytest.fail(diff, pytrace=False)
    # of any task: a thread that executes takes over its process
    assert b"Exit|status=%d" % run.status in [line.data for line in trace.lines]


@pytest.mark.parametrize("program", programs())
def test_ptrace_prints_the_lines_that_the_program_says(
    program: str, built: Path, reachable_folder: Path
) -> None:
    if head_value(SOURCES / f"{Path(program).name}.c", "needs") == "root":
        need_root()
    check(built / program, reachable_folder)


@pytest.mark.root
@pytest.mark.parametrize("program", programs(root=False))
def test_ptrace_prints_the_same_lines_for_a_user_without_rights(
    program: str, built: Path, reachable: Path, reachable_folder: Path
) -> None:
    need_root()
    tracer = Path(shutil.copy(PTRACE.path(), reachable / PTRACE.program))
    for path in (reachable_folder, reachable_folder.parent):
        os.chown(path, NOBODY, NOBODY)
    check(built / program, reachable_folder, backend=PTRACE.of(tracer), user=NOBODY)
