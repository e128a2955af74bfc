# SPDX-License-Identifier: Apache-2.0
"""Every program of tests/events under every backend: the lines are those that the program says."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
import trace_lines
from _pytest.mark import ParameterSet
from backends import BACKENDS, Backend, capture, need_root, need_tool

SOURCES = Path(__file__).resolve().parent.parent / "events"


def head_value(source: Path, key: str) -> str:
    """Return what the comment at the head of a program says behind `key:`."""
    match = re.search(rf"^ \* {key}: (.*)$", source.read_text(), re.MULTILINE)
    return match[1] if match else ""


def programs() -> list[ParameterSet]:
    found = []
    for source in sorted(SOURCES.glob("*.c")):
        if source.stem == "expect":
            continue
        marks = [pytest.mark.root] if head_value(source, "needs") == "root" else []
        for mode in ("64", "32"):
            if head_value(source, "only") in ("", mode):
                name = f"{mode}/{source.stem}"
                found.append(pytest.param(name, marks=marks, id=f"{source.stem}-{mode}"))
    return found


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build all programs as 64-bit and 32-bit static binaries; return their folder."""
    need_tool("make", "make")
    need_tool("gcc", "gcc")
    out = tmp_path_factory.mktemp("programs")
    done = subprocess.run(
        ["make", "-s", "-j2", "-C", SOURCES, f"OUT={out}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            "tests/events does not build; 32-bit static programs need `apt-get install "
            f"gcc-multilib` (or lib32gcc-*-dev and libc6-dev-i386):\n{done.stderr}"
        )
    return out


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("program", programs())
def test_a_backend_prints_the_lines_that_the_program_says(
    program: str, backend: Backend, built: Path, tmp_path: Path
) -> None:
    source = SOURCES / f"{Path(program).name}.c"
    if head_value(source, "needs") == "root":
        need_root()
    folder = (tmp_path / "w").resolve()
    folder.mkdir()
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    run = capture(backend, [built / program], folder, options=head_value(source, "options").split())
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert run.stderr == b"", run.stderr.decode(errors="replace")
    wanted, tids = trace_lines.expected(run.stdout)
    # of any task: a thread that executes takes over its process
    assert b"Exit|status=%d" % run.status in [lines[-1] for lines in wanted.values()]

    trace = trace_lines.parse(run.trace.read_bytes())
    assert trace.cwd == os.fsencode(folder)
    trace_lines.check_stamps(trace, start_ns, end_ns)
    root = trace.program(os.fsencode((built / program).resolve()))
    diff = trace_lines.difference(wanted, trace_lines.by_task(trace, root))
    if diff:
        pytest.fail(diff, pytrace=False)

    upids = {name: upid for upid, name in trace_lines.name_tasks(trace, root).items()}
    pid_mask = (1 << trace_lines.UPID_PID_BITS) - 1
    assert {name: upids[name] & pid_mask for name in tids} == tids
