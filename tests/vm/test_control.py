# SPDX-License-Identifier: Apache-2.0
"""Who may drive the module, and what it counts because it has no event for it."""

from __future__ import annotations

import pytest
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
WAYS_AROUND = ("ways_around",)
STUCK = ("stuck",)
STOPPING = ("stopping",)


@pytest.mark.phase(*WAYS_AROUND)
def test_ways_around_the_events_are_counted(guest: Guest) -> None:
    guest.phase(*WAYS_AROUND)
    wanted = numbers(guest.work / "out" / "around.expected")
    counts = numbers(guest.work / "out" / "around.counters")
    assert len(wanted) == 3
    assert {name: counts[name] for name in wanted} == wanted


@pytest.mark.phase(*WAYS_AROUND)
def test_sessions_are_of_privileged_users_and_one_at_a_time(guest: Guest) -> None:
    guest.phase(*WAYS_AROUND)
    statuses = numbers(guest.work / "out" / "permissions.log")
    allowed = {"status_of_root", "status_of_nobody", "start_of_root", "stop_of_root"}
    assert {name for name, status in statuses.items() if status == 0} == allowed
    said = (guest.work / "out" / "permissions.said").read_text().splitlines()
    errors = [line.removeprefix("ectl: ") for line in said if line.startswith("ectl: ")]
    assert errors == [
        "START: Operation not permitted: needs CAP_SYS_ADMIN in the initial user namespace",
        # netlink of another network namespace does not reach the module
        "family etrace: No such file or directory (is the module loaded?)",
        "START: No such process: no process ROOT_PID in your pid namespace",
        "START: Device or resource busy: a session is already running: stop it first",
        "STOP: Operation not permitted: needs CAP_SYS_ADMIN in the initial user namespace",
    ]


@pytest.mark.phase(*STUCK)
def test_each_session_waits_for_its_own_tasks_and_counts_them(guest: Guest) -> None:
    guest.phase(*STUCK)
    lost = {
        name: numbers(guest.work / "out/stuck" / f"{name}.counters")["lost_events"]
        for name in ("first", "second", "third")
    }
    assert lost == {"first": 1, "second": 1, "third": 0}


def stopping(guest: Guest, name: str) -> str:
    guest.phase(*STOPPING)
    return (guest.work / "out/stopping" / name).read_text()


@pytest.mark.phase(*STOPPING)
def test_nobody_else_waits_while_a_session_is_stopped(guest: Guest) -> None:
    assert stopping(guest, "others.state") == "stopping\n", "something waited for the STOP"
    assert stopping(guest, "others.log").splitlines() == [
        "load_a_family 0",
        "ask_for_it 0",
        "start 125",
        "rmmod 1",
        "stop 0",
        "second_stop 0",
    ]
    said = stopping(guest, "others.said")
    assert "START: Device or resource busy: the last session is still being stopped" in said
    assert stopping(guest, "others.state_afterwards") == "stopped\n"


@pytest.mark.phase(*STOPPING)
def test_everybody_who_stops_a_session_gets_the_last_counts(guest: Guest) -> None:
    first, second, silent = (
        stopping(guest, f"{name}.counters").splitlines()
        for name in ("others", "others.second", "unacknowledged")
    )
    assert first == second
    assert "state stopped" in first
    assert "lost_events 1" in first
    assert "state stopped" in silent
    assert stopping(guest, "unacknowledged.log") == "stop 0\n"


@pytest.mark.phase(*STOPPING)
def test_a_session_ends_whoever_goes_meanwhile(guest: Guest) -> None:
    assert stopping(guest, "caller_gone.log") == "stop_or_none 0\n"
    assert stopping(guest, "owner_gone.log") == "stop 0\n"
    assert stopping(guest, "owner_gone.state_afterwards") == "stopped\n"
    assert stopping(guest, "owner_stops.log") == "stop_or_none 0\n"
    assert stopping(guest, "owner_stops.state_afterwards") == "stopped\n"


@pytest.mark.phase(*STOPPING)
def test_the_module_goes_right_after_the_answer(guest: Guest) -> None:
    # pending work of a task pins it
    assert stopping(guest, "unloaded.log") == "rmmod_with_a_held_task 1\nrmmod 0\n"


@pytest.mark.phase(*STOPPING)
@pytest.mark.phase(*STUCK)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*STOPPING) + guest.console(*STUCK)) == []
