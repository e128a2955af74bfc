# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events under ptrace and BPF, in the guest's kernel and architecture."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trace_lines
from event_programs import SOURCES, check_warnings, programs
from vm.machine import complaints
from vm.rig import Guest, must_exist, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
PTRACE, BPF = ("tracer", "ptrace"), ("tracer", "bpf")
#: what depends on the kernel: loading the programs takes two seconds under emulation
SOME = ("exec_script", "linkat_fd", "mount", "open", "rename", "symlink")
FOLDERS = "/run/etrace-events"
TICK_NS = 10_000_000  # of /proc/uptime


def check(guest: Guest, phase: tuple[str, ...], program: str) -> None:
    guest.phase(*phase)
    must_exist(guest, program)
    name = program.replace("/", "-")
    folder = guest.work / "out" / phase[1]
    source = SOURCES / f"{Path(program).name}.c"
    check_warnings(source, (folder / f"{name}.stderr").read_bytes())
    trace = trace_lines.parse((folder / f"{name}.trace").read_bytes())
    assert trace.cwd == os.fsencode(f"{FOLDERS}/{name}")
    status = numbers(folder / f"{name}.status")
    trace_lines.check_stamps(trace, status["started_ns"], status["ended_ns"] + TICK_NS)
    path = os.fsencode(f"{FOLDERS}/programs/{program}")
    diff = trace_lines.compare_run((folder / f"{name}.expected").read_bytes(), trace, path)
    if diff:
        pytest.fail(diff, pytrace=False)
    assert b"Exit|status=%d" % status["exit"] in [line.data for line in trace.lines]


@pytest.mark.phase(*PTRACE)
@pytest.mark.parametrize("program", programs())
def test_ptrace_writes_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    check(guest, PTRACE, program)


@pytest.mark.phase(*BPF, *SOME)
@pytest.mark.parametrize("name", SOME)
def test_bpf_writes_the_lines_that_some_programs_say(guest: Guest, name: str) -> None:
    check(guest, (*BPF, *SOME), f"64/{name}")


@pytest.mark.slow
@pytest.mark.phase(*BPF)
@pytest.mark.parametrize("program", programs())
def test_bpf_writes_the_lines_that_the_program_says(guest: Guest, program: str) -> None:
    check(guest, BPF, program)


@pytest.mark.phase(*PTRACE)
def test_the_kernel_does_not_complain_of_ptrace(guest: Guest) -> None:
    assert complaints(guest.console(*PTRACE)) == []


@pytest.mark.phase(*BPF, *SOME)
def test_the_kernel_does_not_complain_of_bpf(guest: Guest) -> None:
    assert complaints(guest.console(*BPF, *SOME)) == []
