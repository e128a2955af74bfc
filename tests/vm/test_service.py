# SPDX-License-Identifier: Apache-2.0
"""etraced with the real module: members of its group trace, and gain no rights.

ETRACE_STRESS=long also has sessions refused, stopped, killed, put to sleep and out of disk.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trace_lines
from vm.machine import complaints
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
LONG = os.environ.get("ETRACE_STRESS") == "long"
SERVICE = ("service",) if LONG else ("service", "short")
HOME = "/run/etrace-guest"


@pytest.fixture
def left(guest: Guest) -> Path:
    guest.phase(*SERVICE)
    return guest.work / "-".join(SERVICE)


def opened(left: Path, name: str) -> set[bytes]:
    lines = trace_lines.parse((left / f"{name}.nfsdb").read_bytes()).lines
    return {line.data[3:] for line in lines if line.data.startswith(b"FN|")}


def stats(left: Path, name: str) -> Any:
    return json.loads((left / f"{name}.nfsdb.stats").read_bytes())


def said(left: Path, name: str) -> str:
    return (left / f"{name}.err").read_text()


@pytest.mark.phase(*SERVICE)
def test_every_step_ends_as_expected(left: Path) -> None:
    steps = [line.split()[:3] for line in (left / "steps").read_text().splitlines()]
    assert [step for step in steps if step[1] != step[2]] == []
    assert {"plain", "suid", "foreign", "rmmod"} <= {step[0] for step in steps}


@pytest.mark.phase(*SERVICE)
def test_a_member_of_the_group_traces(left: Path) -> None:
    trace = trace_lines.parse((left / "plain.nfsdb").read_bytes())
    assert trace.cwd == b"/"
    assert b"/etc/hostname" in opened(left, "plain")
    found = stats(left, "plain")
    assert (found["backend"], found["lost"], found["ended"]) == ("kmod", 0, "exit")
    assert stats(left, "auto")["backend"] == "kmod"
    assert stats(left, "env")["exit_status"] == 7
    owners = (left / "owners").read_text().splitlines()
    assert [line.split()[:3] for line in owners] == [["65534", "65534", "600"]] * 2


@pytest.mark.phase(*SERVICE)
def test_who_cannot_trace_gets_the_reason(left: Path) -> None:
    assert "etraced, which does not listen here" in said(left, "none")
    assert "the kernel module is not loaded" in said(left, "missing")
    assert "membership in group etrace" in said(left, "stranger")


@pytest.mark.phase(*SERVICE)
def test_a_set_uid_program_is_left_out_and_counted(left: Path) -> None:
    files = opened(left, "suid")
    assert b"/etc/hostname" in files  # what comes after is traced again
    assert not files & {f"{HOME}/by-gid".encode(), f"{HOME}/by-mode".encode()}
    trace = (left / "suid.nfsdb").read_bytes()
    assert b"hidden-name" not in b"\n".join(
        line.data
        for line in trace_lines.parse(trace).lines
        if line.data.startswith((b"FN|", b"FO|"))
    )
    assert f"PI|{HOME}/suid/".encode() not in trace
    assert stats(left, "suid")["kernel"]["privileged"] == 3
    assert "3 programs that you may not watch" in said(left, "suid")
    assert f"{HOME}/by-gid".encode() in opened(left, "suid-root")


@pytest.mark.phase(*SERVICE)
def test_processes_of_others_are_refused(left: Path) -> None:
    refused = (left / "foreign.out").read_text().splitlines()
    assert [line.removeprefix("etraced refuses: ") for line in refused] == [
        "the process belongs to another user",
        "the process belongs to another user",
        "the process has rights that its user does not have",
        "the process has rights that its user does not have",
    ]


@pytest.mark.phase(*SERVICE)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*SERVICE)) == []


# --- what only make test-stress does, in minutes: service.sh without `short` ---

ALL = ("service",)


@pytest.fixture
def ended(guest: Guest) -> Path:
    guest.phase(*ALL)
    return guest.work / "service"


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_every_session_ends_as_expected_and_leaves_nothing(ended: Path) -> None:
    steps = [line.split()[:3] for line in (ended / "steps").read_text().splitlines()]
    assert [step for step in steps if step[1] != step[2]] == []
    assert {"suspend", "full-clean", "died-clean", "stop", "rmmod"} <= {step[0] for step in steps}


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_one_session_at_a_time_is_said(ended: Path) -> None:
    for name in ("second", "fallback", "root-start"):
        assert "a session is already running" in said(ended, name)
    assert "systemctl stop etraced" in said(ended, "root-stop")


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_what_ends_a_session_is_named(ended: Path) -> None:
    assert "etraced was stopped during the session" in said(ended, "long")
    assert "No space left on device" in said(ended, "full")
    assert "etraced ended during the session" in said(ended, "died")
    assert "was cut off; it is cleaned up" in said(ended, "etraced")


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_a_killed_collector_gets_a_successor(ended: Path) -> None:
    assert "another one continues the trace" in said(ended, "collector")
    found = stats(ended, "collector")
    assert (found["ended"], found["collectors"]) == ("exit", 2)
    # the last line may say how many events the first had in hand: a parser of lines stops there
    assert b"!FN|/etc/hostname\n" in (ended / "collector.nfsdb").read_bytes()


@pytest.mark.slow
@pytest.mark.phase(*ALL)
def test_a_session_survives_a_processor_and_the_machines_sleep(ended: Path) -> None:
    found = stats(ended, "asleep")
    assert (found["ended"], found["lost"]) == ("exit", 0)
    assert b"/etc/hostname" in opened(ended, "asleep")
