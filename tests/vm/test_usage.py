# SPDX-License-Identifier: Apache-2.0
"""What processes used, by the module: against what the kernel reported to the same programs."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import trace_lines
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
USAGE = ("usage",)
MS = 1_000_000
#: guest/spend.c
HELD = 32 << 20
MOVED = 300_000
N_NAPS = 30
N_BRIEF = 60
BRIEF_BYTES = 8 << 20  # a static program that does nothing has less
FIELDS = ("user", "system", "maxrss", "rchar", "wchar", "voluntary", "forced")

Used = dict[str, int]


@cache
def traced(folder: Path) -> trace_lines.Trace:
    return trace_lines.parse(b"INITCWD=/\n" + (folder / "trace").read_bytes())


def folder_of(guest: Guest) -> Path:
    guest.phase(*USAGE)
    return guest.work / "out" / "usage"


def tasks(guest: Guest, mode: str) -> list[int]:
    """Return the tasks that executed `spend MODE`."""
    lines = traced(folder_of(guest)).lines
    return [line.upid for line in lines if line.data == b"A[1]" + mode.encode()]


def usages(guest: Guest, upid: int) -> list[Used]:
    """Return what the Usage lines of a task say, in order."""
    found = [line.data for line in traced(folder_of(guest)).usage if line.upid == upid]
    reported = [[int(number) for number in re.findall(rb"=(-?\d+)", data)] for data in found]
    return [dict(zip(FIELDS, values, strict=True)) for values in reported]


def cpu_ns(used: Used) -> int:
    return used["user"] + used["system"]


@pytest.mark.phase(*USAGE)
def test_a_process_is_counted_with_its_threads_and_without_its_children(guest: Guest) -> None:
    (task,) = tasks(guest, "work")
    said = numbers(folder_of(guest) / "work.said")
    made, executed, end = usages(guest, task)
    assert made["maxrss"] == executed["maxrss"] == -1
    assert 0 < cpu_ns(made) < 50 * MS <= cpu_ns(executed)
    assert MOVED <= executed["rchar"] - made["rchar"] < 2 * MOVED
    assert MOVED <= executed["wchar"] - made["wchar"] < 2 * MOVED
    assert said["cpu_ns"] >= 150 * MS
    # the same clock, read a moment later
    assert 0 < cpu_ns(end) - said["cpu_ns"] < 50 * MS
    assert HELD < end["maxrss"] < 2 * HELD
    assert MOVED <= end["rchar"] - executed["rchar"] < 2 * MOVED
    assert MOVED <= end["wchar"] - executed["wchar"] < 2 * MOVED
    assert end["voluntary"] >= said["voluntary"] >= N_NAPS
    assert end["forced"] >= said["forced"]


@pytest.mark.phase(*USAGE)
def test_what_children_moved_is_not_their_parents(guest: Guest) -> None:
    (parent,) = tasks(guest, "parent")
    end = usages(guest, parent)[-1]
    assert 0 < end["rchar"] < MOVED
    assert 0 <= end["wchar"] < MOVED
    movers = tasks(guest, "mover")
    assert len(movers) == 3
    for mover in movers:
        assert usages(guest, mover)[-1]["rchar"] > MOVED


@pytest.mark.phase(*USAGE)
def test_io_is_not_known_when_the_kernel_mixes_threads_and_children(guest: Guest) -> None:
    (both,) = tasks(guest, "both")
    end = usages(guest, both)[-1]
    assert end["rchar"] == end["wchar"] == -1
    assert cpu_ns(end) > 0


@pytest.mark.phase(*USAGE)
def test_threads_that_end_before_a_tick_are_counted(guest: Guest) -> None:
    (task,) = tasks(guest, "brief-threads")
    said = numbers(folder_of(guest) / "brief-threads.said")
    assert said["spun_ns"] >= N_BRIEF * MS
    # the rest is what other programs took of the processors meanwhile
    assert cpu_ns(usages(guest, task)[-1]) - said["first_ns"] > 0.9 * said["spun_ns"]


@pytest.mark.phase(*USAGE)
def test_a_child_that_never_executes_has_no_memory_of_its_own(guest: Guest) -> None:
    (parent,) = tasks(guest, "parent")
    trace = traced(folder_of(guest))
    texts = [line.data.partition(b"SchedFork|pid=")[2] for line in trace.of(parent)]
    *_, child = [int(text) for text in texts if text]
    assert not any(line.data.startswith(b"New_proc|") for line in trace.of(child))
    (end,) = usages(guest, child)
    assert end["maxrss"] == -1
    assert cpu_ns(end) > 0


@pytest.mark.phase(*USAGE)
def test_memory_is_that_of_the_last_program(guest: Guest) -> None:
    """Not of the parent, whose memory a child has until it executes; getrusage(2) reports that."""
    for task in tasks(guest, "brief"):
        end = usages(guest, task)[-1]
        assert 0 < end["maxrss"] < BRIEF_BYTES, end


@pytest.mark.phase(*USAGE)
def test_a_process_that_no_tick_has_seen_used_cpu_time(guest: Guest) -> None:
    brief = tasks(guest, "brief")
    assert len(brief) == 11
    for task in brief:
        before, end = usages(guest, task)
        assert 0 < cpu_ns(before) < cpu_ns(end), (before, end)


@pytest.mark.phase(*USAGE)
def test_a_first_thread_that_others_outlive_reports_nothing(guest: Guest) -> None:
    (task,) = tasks(guest, "outlived")
    (at_its_execution,) = usages(guest, task)
    assert cpu_ns(at_its_execution) < 50 * MS


@pytest.mark.phase(*USAGE)
def test_threads_that_are_ended_together_are_all_counted(guest: Guest) -> None:
    (task,) = tasks(guest, "crowd")
    said = numbers(folder_of(guest) / "crowd.said")
    assert said["cpu_ns"] > 150 * MS
    end = usages(guest, task)[-1]
    assert said["cpu_ns"] < cpu_ns(end) < 2 * said["cpu_ns"]


@pytest.mark.phase(*USAGE)
def test_a_thread_that_executes_goes_on_with_the_sums_of_its_process(guest: Guest) -> None:
    (first,) = tasks(guest, "thread-executes")
    assert len(usages(guest, first)) == 1  # at its execution: it was replaced, the process goes on
    lines = traced(folder_of(guest)).of(first)
    forks = [int(line.data.partition(b"pid=")[2]) for line in lines if b"SchedFork" in line.data]
    (thread,) = forks
    executed, end = usages(guest, thread)
    assert 40 * MS < cpu_ns(executed) < cpu_ns(end)


@pytest.mark.phase(*USAGE)
def test_a_killed_process_is_counted(guest: Guest) -> None:
    (task,) = tasks(guest, "killed")
    end = usages(guest, task)[-1]
    assert cpu_ns(end) >= 20 * MS
    assert end["maxrss"] > 0
    assert traced(folder_of(guest)).of(task)[-1].data == b"Exit|status=137"


@pytest.mark.phase(*USAGE)
def test_a_usage_has_the_stamp_and_the_cpu_of_the_line_after_it(guest: Guest) -> None:
    text = (folder_of(guest) / "trace").read_bytes().splitlines()
    for line, after in pairwise(text):
        if b"!Usage|" in line:
            assert line.partition(b"!")[0] == after.partition(b"!")[0], (line, after)
            assert after.partition(b"!")[2].startswith((b"Exit|", b"Close|", b"New_proc|"))


@pytest.mark.phase(*USAGE)
def test_without_the_option_there_is_none(guest: Guest) -> None:
    text = (folder_of(guest) / "without.trace").read_bytes()
    assert b"!Exit|" in text
    assert b"!Usage|" not in text


@pytest.mark.phase(*USAGE)
def test_nothing_was_lost_and_the_kernel_said_nothing(guest: Guest) -> None:
    counts = numbers(folder_of(guest) / "counters")
    names = ("live", "untracked", "lost_events", "no_memory")
    assert [counts[name] for name in names] == [0, 0, 0, 0]
    assert "missing_probe" not in (folder_of(guest) / "counters").read_text()
    assert complaints(guest.console(*USAGE)) == []
