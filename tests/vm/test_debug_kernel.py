# SPDX-License-Identifier: Apache-2.0
"""The module on a kernel full of detectors; first each detector must detect.

`make test-kasan` sets ETRACE_KERNELS=debug; the other tests of this folder run there as well, and
before: failing allocations leave the guest's 9p client broken, whose files then give EINVAL.
"""

from __future__ import annotations

import re
import shutil

import pytest
from vm import kernels, machine
from vm.rig import BUILD, Guest, numbers

pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(14400),
    pytest.mark.kasan,
]
FAULTS = ("faults",)
LEAKS = ("leaks",)
DETECTED = {
    "lock_order": "possible circular locking dependency detected",
    "rcu_sleep": "RCU nest depth: 1, expected: 0",
    "atomic_sleep": "BUG: sleeping function called from invalid context",
    "use_after_free": "BUG: KASAN: use-after-free",
}


def test_each_detector_detects() -> None:
    kernel = kernels.find("debug")
    work = BUILD / "detectors"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    kernels.build_control(kernel, work)
    (work / "out").mkdir()
    ran = machine.run(kernel, work, "detectors.sh")
    assert ran.status == 0
    parts = re.split(r".*etrace-detector (\w+)\n", ran.console)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    for what, words in DETECTED.items():
        assert words in said[what]
        assert machine.complaints(said[what])
    leaks = (work / "out" / "kmemleak").read_text()
    assert leaks.count("unreferenced object") >= 10
    assert "[complain]" in leaks


@pytest.mark.phase(*FAULTS)
def test_failing_allocations_cost_events_and_no_more(guest: Guest) -> None:
    guest.phase(*FAULTS)
    folder = guest.work / "out" / "faults"
    storms = [numbers(path) for path in sorted(folder.glob("storm*.counters"))]
    assert len(storms) == 4
    assert sum(counts["no_memory"] + counts["untracked"] for counts in storms) > 0
    failed = numbers(folder / "failed")
    assert failed["starts"] > 0
    assert failed["loads"] > 0


@pytest.mark.phase(*FAULTS)
def test_the_module_works_as_before_when_memory_is_back(guest: Guest) -> None:
    guest.phase(*FAULTS)
    counts = numbers(guest.work / "out" / "faults" / "after.counters")
    assert (counts["exit"], counts["tasks"], counts["live"]) == (0, 21, 0)
    assert (counts["untracked"], counts["no_memory"], counts["lost_events"]) == (0, 0, 0)


@pytest.mark.phase(*FAULTS)
@pytest.mark.phase(*LEAKS)
def test_nothing_is_leaked(guest: Guest) -> None:
    guest.phase(*LEAKS)
    assert (guest.work / "out" / "kmemleak").read_text() == ""
    # the kernel itself reports some failing allocations, with the stack that asked
    said = re.sub(
        r"[^\n]*(vmalloc error|page allocation failure)(.|\n)*?</TASK>\n",
        "",
        guest.console(*FAULTS),
    )
    assert machine.complaints(said + guest.console(*LEAKS)) == []
