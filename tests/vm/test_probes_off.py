# SPDX-License-Identifier: Apache-2.0
"""Kprobes that somebody has switched off: all of them are missing, and the session says so."""

from __future__ import annotations

import pytest
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
PROBES_OFF = ("probes_off",)
ALWAYS = {"do_close_on_exec", "scm_detach_fds"}  # on each kernel and with each set of options


def missing(guest: Guest, name: str) -> list[str]:
    text = (guest.work / "out" / "probes_off" / name).read_text()
    mark = "missing_probe "
    return [line.removeprefix(mark) for line in text.splitlines() if line.startswith(mark)]


def check_nothing_is_missing(guest: Guest, case: str) -> None:
    assert [missing(guest, f"{case}.{what}") for what in ("status", "stop")] == [[], []]


def goes_on(guest: Guest, case: str) -> bool:
    """Look whether nothing is missing where kprobes do without ftrace, as on arm64: they trap."""
    if guest.kernel.machine == "x86_64" or not case.startswith("ftrace"):
        return False
    check_nothing_is_missing(guest, case)
    return True


@pytest.mark.phase(*PROBES_OFF)
@pytest.mark.parametrize("case", ["on", "on_again"])
def test_nothing_is_missing_when_they_fire(guest: Guest, case: str) -> None:
    guest.phase(*PROBES_OFF)
    check_nothing_is_missing(guest, case)


@pytest.mark.phase(*PROBES_OFF)
@pytest.mark.parametrize("case", ["kprobes", "ftrace"])
def test_all_are_missing_at_the_start_when_they_are_off(guest: Guest, case: str) -> None:
    guest.phase(*PROBES_OFF)
    if goes_on(guest, case):
        return
    at_start = missing(guest, f"{case}.status")
    assert set(at_start) >= ALWAYS
    assert len(set(at_start)) == len(at_start)
    assert missing(guest, f"{case}.stop") == at_start


@pytest.mark.phase(*PROBES_OFF)
@pytest.mark.parametrize("case", ["kprobes_later", "ftrace_later"])
def test_all_are_missing_at_the_end_when_they_were_switched_off(guest: Guest, case: str) -> None:
    guest.phase(*PROBES_OFF)
    if goes_on(guest, case):
        return
    assert missing(guest, f"{case}.status") == []
    assert set(missing(guest, f"{case}.stop")) >= ALWAYS
