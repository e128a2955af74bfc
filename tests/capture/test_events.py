# SPDX-License-Identifier: Apache-2.0
"""Every program of tests/events under every backend: the lines are those that the program says."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trace_lines
from backends import BACKENDS, Backend, capture, need_root
from event_programs import SOURCES, build_programs, head_value, programs

NOBODY = 65534


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="etrace-events-", dir="/tmp") as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="session")
def built(public: Path) -> Path:
    """Build all programs as 64-bit and 32-bit static binaries; return their folder."""
    build_programs(public / "programs")
    return public / "programs"


@pytest.fixture
def folder(public: Path) -> Iterator[Path]:
    """Return a new empty folder for one run."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=public) as name:
        path = Path(name) / "w"
        path.mkdir()
        yield path


def check(backend: Backend, program: Path, folder: Path, user: int | None = None) -> None:
    """Run one program under capture and compare what it said with what was captured."""
    source = SOURCES / f"{program.name}.c"
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    options = head_value(source, "options").split()
    run = capture(backend, [program], folder, options=options, user=user)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert run.stderr == b"", run.stderr.decode(errors="replace")
    trace = trace_lines.parse(run.trace.read_bytes())
    assert trace.cwd == os.fsencode(folder)
    trace_lines.check_stamps(trace, start_ns, end_ns)
    diff = trace_lines.compare_run(run.stdout, trace, os.fsencode(program))
    if diff:
        pytest.fail(diff, pytrace=False)
    # of any task: a thread that executes takes over its process
    assert b"Exit|status=%d" % run.status in [line.data for line in trace.lines]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("program", programs())
def test_a_backend_prints_the_lines_that_the_program_says(
    program: str, backend: Backend, built: Path, folder: Path
) -> None:
    if head_value(SOURCES / f"{Path(program).name}.c", "needs") == "root":
        need_root()
    check(backend, built / program, folder)


@pytest.mark.root
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("program", programs(root=False))
def test_a_backend_prints_the_same_lines_for_a_user_without_rights(
    program: str, backend: Backend, built: Path, public: Path, folder: Path
) -> None:
    need_root()
    tracer = Path(shutil.copy(backend.path(), public / backend.program))
    for path in (folder, folder.parent):
        os.chown(path, NOBODY, NOBODY)
    check(backend.of(tracer), built / program, folder, NOBODY)
