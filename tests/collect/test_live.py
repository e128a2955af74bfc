# SPDX-License-Identifier: Apache-2.0
"""A collection that runs: the CPUs of a make-believe tracefs are pipes that the test writes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from collect.collector import N_CPUS, Live, close, collect, content, now_ns
from collect.ring_buffer import entry, exec_event, page
from trying import until


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with ExitStack() as stack:
        yield Live(tmp_path, stack)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_was_written_before(live: Live, number: int) -> None:
    events = [close(at % N_CPUS) for at in range(30)]
    for event in events:
        live.write(event.cpu, event)
    assert live.end(number) == b"".join(event.lines for event in events)
    assert live.process.returncode == 0
    assert live.stats()["records"] == 30


def test_an_idle_cpu_holds_nothing_back(live: Live) -> None:
    first, second = close(0), close(0)
    live.write(0, second, first)
    live.wait_for(first.lines + second.lines)  # while the others have written nothing


def test_a_cpu_that_is_late_still_comes_first(live: Live) -> None:
    then = now_ns() + 2 * 10**9  # much later than the hold-back ends on a loaded machine
    early, late = close(1, then), close(0, then + 10**7)
    live.write(0, late)
    time.sleep(0.2)  # several rounds
    live.write(1, early)
    live.wait_for(early.lines + late.lines)


def test_an_event_whose_records_come_one_by_one_is_whole(live: Live) -> None:
    event = exec_event(1 << 22 | 9, now_ns(), 0, [b"cc", b"x" * 900], per_record=1)
    records = event.records()
    live.cpus[0].write(page(entry(records[0])))
    time.sleep(0.7)  # longer than the hold-back: the rest is awaited
    between = close(1)
    live.write(1, between)
    for number, record in enumerate(records[1:]):
        live.cpus[(number + 1) % N_CPUS].write(page(entry(record)))
    live.wait_for(event.lines + between.lines)


def test_an_unfinished_event_is_left_out_at_the_end(live: Live) -> None:
    event = exec_event(1 << 22 | 9, now_ns(), 0, [b"cc", b"x" * 900], per_record=1)
    live.cpus[0].write(page(entry(event.records()[0])))
    after = close(1)
    live.write(1, after)
    assert live.end() == after.lines
    assert live.process.returncode == 2
    assert live.stats()["incomplete_events"] == 1


def test_a_page_that_comes_in_pieces_is_put_together(live: Live) -> None:
    event = close(2)
    raw = content(event)
    live.cpus[2].write(raw[:30])
    time.sleep(0.15)
    live.cpus[2].write(raw[30:])
    live.wait_for(event.lines)


def test_a_killed_collector_leaves_the_lines_that_it_wrote(live: Live) -> None:
    event = close(0)
    live.write(0, event)
    live.wait_for(event.lines)
    live.process.kill()
    assert live.out.read_bytes() == event.lines


def test_a_second_collector_is_refused(live: Live, tmp_path: Path) -> None:
    done = collect("--tracefs", tmp_path)
    assert done.status == 125
    assert "another etrace_cat reads" in done.messages


def test_dropped_records_are_said_while_it_runs_and_counted(live: Live) -> None:
    stats = live.instance / "per_cpu/cpu1/stats"
    stats.write_text("entries: 0\noverrun: 0\ndropped events: 17\nread events: 0\n")
    assert live.process.stderr
    assert b"cpu 1: 17 records were lost" in live.process.stderr.readline()
    live.end()
    assert live.process.returncode == 2
    assert (live.stats()["dropped_records"], live.stats()["lost"]) == (17, 0)


def test_hanging_up_does_not_end_it(live: Live) -> None:
    live.process.send_signal(signal.SIGHUP)
    event = close(0)
    live.write(0, event)
    live.wait_for(event.lines)


def test_a_kept_descriptor_is_open_until_the_end(tmp_path: Path) -> None:
    """The owner of the session is a socket: it must close when the collector goes, not before."""
    read_end, write_end = os.pipe()
    with ExitStack() as stack, os.fdopen(read_end, "rb") as watched:
        live = Live(tmp_path, stack, "--keep-fd", write_end)
        os.close(write_end)
        os.set_blocking(read_end, False)
        time.sleep(0.2)
        assert watched.read() is None  # open, and nothing in it
        live.end()
        os.set_blocking(read_end, True)
        assert watched.read() == b""


def test_status_lines_come_while_it_runs(tmp_path: Path) -> None:
    status = tmp_path / "status"
    with ExitStack() as stack, status.open("wb") as file:
        live = Live(tmp_path, stack, "--status-fd", file.fileno())
        event = close(0)
        live.write(0, event)
        live.wait_for(event.lines)
        until(lambda: json.loads(status.read_text() or "{}").get("records"))
