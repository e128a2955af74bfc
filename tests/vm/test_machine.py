# SPDX-License-Identifier: Apache-2.0
"""The rig notices what it is there to notice: a kernel that complains, a guest that dies."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from vm import kernels, machine
from vm.rig import BUILD

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]


@pytest.fixture
def work() -> Path:
    path = BUILD / "control"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


@pytest.mark.slow  # boots twice more to show that this rig works: make test-stress
def test_a_warning_and_a_crash_are_noticed(work: Path) -> None:
    kernel = kernels.find(kernels.MACHINE)
    kernels.build_control(kernel, work)
    with pytest.raises(machine.MachineError, match=r"crash\.sh did not end: no marker") as error:
        machine.run(kernel, work, "crash.sh")
    assert "the guest is about to crash" in str(error.value)
    found = machine.complaints((work / machine.CONSOLE).read_text())
    assert "complain: asked to warn" in found[0]
    assert any("Kernel panic" in text for text in found)


def test_a_guest_that_hangs_is_ended(work: Path) -> None:
    with pytest.raises(machine.MachineError, match=r"still running after \d+ s of its own time"):
        machine.run(kernels.find(kernels.MACHINE), work, "crash.sh", boot=machine.Boot(seconds=2))
    assert (work / machine.HANGS).exists()


@pytest.mark.parametrize(
    "line",
    [
        "[    1.0] BUG: unable to handle page fault for address: ffff",
        "[    1.0] watchdog: BUG: soft lockup - CPU#1 stuck for 26s!",
        "[    1.0] WARNING: possible circular locking dependency detected",
        "[    1.0] INFO: task make:12 blocked for more than 120 seconds.",
        "[    1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
        "[    1.0] kmemleak: 16 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    ],
)
def test_complaints_of_a_kernel_are_known(line: str) -> None:
    assert machine.complaints(f"[    0.9] fine\n{line}\n[    1.1] fine\n")


def test_a_quiet_boot_has_none() -> None:
    assert machine.complaints("[    0.1] rcu: Hierarchical SRCU implementation.\n") == []


def test_what_is_missing_in_the_root_is_no_complaint_of_the_kernel() -> None:
    line = '[    4.0] virtme-ng-init: WARNING: failed to run: "systemd-tmpfiles --create"\n'
    assert machine.complaints(line) == []
