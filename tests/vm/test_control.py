# SPDX-License-Identifier: Apache-2.0
"""Who may drive the module, and what it counts because it has no event for it."""

from __future__ import annotations

import pytest
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
WAYS_AROUND = ("ways_around",)


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
        "START: Operation not permitted",
        # netlink of another network namespace does not reach the module
        "family etrace: No such file or directory (is the module loaded?)",
        "START: No such process",
        "START: Device or resource busy",
        "STOP: Operation not permitted",
    ]
