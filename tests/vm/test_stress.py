# SPDX-License-Identifier: Apache-2.0
"""Storms under the module: nothing is lost without being counted, nothing is left over.

The oracle for losses is the ring buffer, which counts by itself what was read from it and what did
not fit. ETRACE_STRESS=long takes ten times the storms and 500 rounds of each loop.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import trace_lines
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
# five rounds show that a loop works; 500 find what is rare, in make test-stress
SCALE, LOOPS = ("10", "500") if os.environ.get("ETRACE_STRESS") == "long" else ("1", "5")
STRESS = ("stress", SCALE, LOOPS)
# A second of the largest load holds less than this; a leak of a record or a task per event more.
GROWTH_KIB = 4096
WHOLE = ("storms", "memories", "hotplug")
LOSING = ("stalled", "killed_reader")


def out(guest: Guest) -> Path:
    guest.phase(*STRESS)
    return guest.work / "out" / "stress"


@pytest.mark.phase(*STRESS)
@pytest.mark.parametrize("part", [*WHOLE, *LOSING])
def test_every_record_was_read_or_is_reported_lost(guest: Guest, part: str) -> None:
    folder = out(guest)
    counts = numbers(folder / f"{part}.counters")
    ring = numbers(folder / f"{part}.ring")
    assert counts["records"] > 100
    assert counts["records"] == ring["read_events"]
    assert counts["lost_records"] == ring["dropped_events"]
    assert (ring["overrun"], ring["entries"]) == (0, 0)
    assert (counts["live"], counts["untracked"]) == (0, 0)


@pytest.mark.phase(*STRESS)
@pytest.mark.parametrize("part", WHOLE)
def test_what_is_read_is_whole(guest: Guest, part: str) -> None:
    folder = out(guest)
    counts = numbers(folder / f"{part}.counters")
    assert (counts["lost_events"], counts["lost_records"]) == (0, 0)
    trace = trace_lines.parse(b"INITCWD=/\n" + (folder / f"{part}.trace").read_bytes())
    # whole events with one stamp each, in order
    trace_lines.check_stamps(trace, counts["started_ns"], counts["ended_ns"])
    (root,) = trace.roots()
    assert root == counts["root_upid"]
    names = trace_lines.name_tasks(trace, root)
    assert len(names) == counts["tasks"]
    ended = [line.upid for line in trace.lines if line.data.startswith(b"Exit|")]
    assert sorted(ended) == sorted(names)


@pytest.mark.phase(*STRESS)
def test_a_reader_that_stalls_loses_events_and_no_more(guest: Guest) -> None:
    folder = out(guest)
    counts = numbers(folder / "stalled.counters")
    assert counts["lost_events"] > 0
    assert counts["exit"] == 0
    text = (folder / "stalled.trace").read_bytes()
    lines = [line for line in text.splitlines() if not re.match(rb"CPU:\d+ \[LOST", line)]
    trace = trace_lines.parse(b"INITCWD=/\n" + b"\n".join(lines) + b"\n")
    assert len(trace.lines) > 100


@pytest.mark.phase(*STRESS)
def test_a_killed_reader_is_followed_by_another(guest: Guest) -> None:
    folder = out(guest)
    counts = numbers(folder / "killed_reader.counters")
    assert (counts["exit"], counts["lost_events"]) == (0, 0)
    lines = (folder / "killed_reader.trace").read_bytes().splitlines()
    assert len(lines) == len(set(lines)), "a line was read twice"
    whole = [line for line in lines if trace_lines.PREFIX.match(line)]
    trace = trace_lines.parse(b"INITCWD=/\n" + b"\n".join(whole) + b"\n")
    read = sum(not line.goes_on for line in trace.lines)
    # the killed reader takes with it what one read(2) gave, less than a page of text
    assert 0 <= counts["events"] - read <= 4096 // 30


@pytest.mark.phase(*STRESS)
def test_a_processor_went_and_came_meanwhile(guest: Guest) -> None:
    assert len((out(guest) / "hotplug.rounds").read_text().splitlines()) > 1


@pytest.mark.phase(*STRESS)
def test_sessions_and_the_module_come_and_go_under_load(guest: Guest) -> None:
    folder = out(guest)
    assert (folder / "start_stop.rounds").read_text() == f"{LOOPS}\n"
    assert (folder / "reload.rounds").read_text() == f"{LOOPS}\n"


@pytest.mark.phase(*STRESS)
def test_a_session_ends_with_its_owner(guest: Guest) -> None:
    assert "state stopped\n" in (out(guest) / "killed_owner.counters").read_text()


@pytest.mark.phase(*STRESS)
def test_no_task_is_left(guest: Guest) -> None:
    assert (out(guest) / "left").read_text() == ""


@pytest.mark.phase(*STRESS)
def test_the_kernel_gets_its_memory_back(guest: Guest) -> None:
    before, after = (memory(out(guest) / f"{when}.memory") for when in ("before", "after"))
    assert after["SUnreclaim"] - before["SUnreclaim"] < GROWTH_KIB
    # Linux 6.12 keeps tens of MB of freed pages in lists of each processor for a while
    assert before["Free"] - after["Free"] < 4 * GROWTH_KIB
    left = [name for name in after if "etrace" in name]
    assert left == []


def memory(path: Path) -> dict[str, int]:
    """Read /proc/meminfo's values in KiB and each cache's live objects."""
    found = {}
    for line in path.read_text().splitlines():
        if match := re.match(r"([^#\s:]+):? +(\d+)", line):
            found[match[1]] = int(match[2])
    return found


@pytest.mark.phase(*STRESS)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*STRESS)) == []
