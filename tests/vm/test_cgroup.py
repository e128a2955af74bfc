# SPDX-License-Identifier: Apache-2.0
"""A control group is traced: who is there, who is moved there, and what they start."""

from __future__ import annotations

from collections import Counter

import pytest
import trace_lines
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
N_THREADS = 1000  # more than are added while interrupts are off
CGROUP = ("cgroup", str(N_THREADS))


@pytest.mark.phase(*CGROUP)
def test_all_threads_of_a_process_that_is_moved_are_traced(guest: Guest) -> None:
    guest.phase(*CGROUP)
    folder = guest.work / "out" / "cgroup"
    assert (folder / "moved").read_text().split() == ["1", str(N_THREADS + 2)]
    counts = numbers(folder / "counters")
    # and the shell below it, its two programs: one of a child, one in its own place
    assert counts["tasks"] == N_THREADS + 4
    names = ("live", "untracked", "lost_events", "no_memory")
    assert [counts[name] for name in names] == [0, 0, 0, 0]


@pytest.mark.phase(*CGROUP)
def test_what_members_do_is_in_the_trace_and_nothing_else(guest: Guest) -> None:
    guest.phase(*CGROUP)
    text = (guest.work / "out" / "cgroup" / "trace").read_bytes()
    trace = trace_lines.parse(b"INITCWD=/\n" + text)
    lines = Counter(line.data.partition(b"|fname")[0] for line in trace.lines)
    opened = Counter(line.data for line in trace.lines if line.data.startswith(b"FN|"))
    assert opened[b"FN|/run/etrace-cgroup/thread"] == N_THREADS + 1
    assert opened[b"FN|/run/etrace-cgroup/outside"] == 0
    assert lines[b"Exit|status=0"] == N_THREADS + 1 + 2
    assert lines[b"Exit|status=143"] == 1  # the first member was killed
    programs = Counter(line.data for line in trace.lines if line.data.startswith(b"A["))
    assert (programs[b"A[1]true"], programs[b"A[1]cat"]) == (1, 1)


@pytest.mark.phase(*CGROUP)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*CGROUP)) == []
