# SPDX-License-Identifier: Apache-2.0
"""Records of several CPUs come out as whole events, by time."""

from __future__ import annotations

import random
from pathlib import Path

import event_lines as oracle
import pytest
from collect.collector import replay
from collect.ring_buffer import Event, Instance, exec_event, plain_event
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

START = 72_000_000_000
ARGV = [b"cc", b"-c", b"a\nb.c", b"x" * 2000, b""]


def close(upid: int, time_ns: int, cpu: int, fd: int = 3) -> Event:
    return plain_event(upid, time_ns, cpu, "Close", {"fd": fd})


def lines(events: list[Event]) -> bytes:
    return b"".join(event.lines for event in sorted(events, key=lambda event: event.time_ns))


def every_event() -> list[Event]:
    """Return one event of each kind, with strings short and long."""
    out = []
    for at, tag in enumerate(oracle.SYNTAX):
        values: dict[str, oracle.Value] = {}
        for name, kind, _ in oracle.arguments(tag):
            if kind in oracle.KINDS:
                values[name] = 7
            else:
                values[kind] = b"/a\nb/" + b"y" * (900 * (at % 2))
        out.append(plain_event(5 << 22 | 1, START + at, at % 3, tag, values))
    return out


def test_every_kind_of_event_is_printed_as_the_seed_says(tmp_path: Path) -> None:
    events = every_event()
    instance = Instance(tmp_path)
    for event in events:
        instance.add_events(event.cpu, [event])
    done = replay(instance.write())
    assert done.text == lines(events)
    assert (done.status, done.messages) == (0, "")
    assert done.stats["events"] == len(events)
    assert done.stats["lines"] == done.text.count(b"\n")
    assert done.stats["bytes"] == len(done.text)


def test_cpus_are_merged_by_time(tmp_path: Path) -> None:
    random.seed(3)
    events = [
        close(at % 5 + 1, START + at * 3_000_000, random.randrange(4), at) for at in range(500)
    ]
    instance = Instance(tmp_path)
    for event in events:
        instance.add_events(event.cpu, [event])
    instance.buffers[9] = []  # a CPU that writes nothing
    done = replay(instance.write())
    assert done.text == lines(events)
    assert done.stats["unordered_events"] == 0


def test_records_that_a_cpu_holds_out_of_order_come_out_in_order(tmp_path: Path) -> None:
    events = [close(at, START + at * 1000, 0) for at in range(1, 400)]
    instance = Instance(tmp_path)
    for at in range(0, len(events), 8):
        instance.add_events(0, reversed(events[at : at + 8]))
    done = replay(instance.write())
    assert done.text == lines(events)
    assert done.stats["unordered_events"] == 0


def test_an_event_of_several_records_is_whole_though_others_lie_between(tmp_path: Path) -> None:
    event = exec_event(1 << 22 | 9, START, 1, ARGV, per_record=1)
    others = [close(at, START + at, 0) for at in range(1, 50)]
    instance = Instance(tmp_path)
    records = event.records()
    for at, record in enumerate(records):  # the task wanders over three CPUs
        instance.add(at % 3, record)
        instance.add_events(at % 3, others[at * 5 : at * 5 + 5])
    instance.add_events(2, others[len(records) * 5 :])
    done = replay(instance.write())
    assert done.text == event.lines + lines(others)
    assert done.stats["executions"] == 1
    assert done.stats["records"] == len(records) + len(others)


def test_events_of_two_cpus_at_the_same_instant_are_distinguished(tmp_path: Path) -> None:
    """Variables of two executions: both have upid 0."""
    events = [exec_event(0, START, cpu, [b"%d" % cpu, b"x"], per_record=1) for cpu in (0, 1)]
    instance = Instance(tmp_path)
    for at in range(3):
        for event in events:
            instance.add(2, event.records()[at])  # both tasks have moved to a third CPU
    done = replay(instance.write())
    assert done.text == b"".join(event.lines for event in events)
    assert (done.status, done.stats["incomplete_events"]) == (0, 0)


def test_the_numbers_of_records_may_wrap(tmp_path: Path) -> None:
    event = exec_event(1 << 22 | 9, START, 1, [b"x"] * 17_000, per_record=1)
    assert len(event.payloads) > 1 << 14
    instance = Instance(tmp_path)
    instance.add_events(0, [event])
    done = replay(instance.write())
    assert done.text == event.lines
    assert (done.status, done.stats["incomplete_events"]) == (0, 0)


@pytest.mark.parametrize("missing", range(4))
def test_an_event_with_a_hole_is_left_out_and_counted(tmp_path: Path, missing: int) -> None:
    event = exec_event(1 << 22 | 9, START, 0, ARGV[:3], per_record=1)
    before = close(1, START - 5, 0)
    after = [close(1 << 22 | 9, START + 100, 1), close(2, START + 10**10, 1)]
    records = event.records()
    assert len(records) == 4
    del records[missing]
    instance = Instance(tmp_path)
    instance.add_events(0, [before])
    instance.add(0, *records)
    instance.add_events(1, after)
    done = replay(instance.write())
    assert done.text == lines([before, *after])
    assert (done.status, done.stats["incomplete_events"], done.stats["lost"]) == (2, 1, 0)
    assert "left out: some records were lost" in done.messages


def test_an_incomplete_event_does_not_hold_back_the_rest_forever(tmp_path: Path) -> None:
    event = exec_event(1 << 22 | 9, START, 0, ARGV[:3], per_record=1)
    others = [close(2, START + at * 10_000_000, 1) for at in range(1, 5000)]
    instance = Instance(tmp_path)
    instance.add(0, *event.records()[:2])
    instance.add_events(1, others)
    done = replay(instance.write(), "--memory", "1")
    assert done.text == lines(others)
    assert done.stats["incomplete_events"] + done.stats["given_up_events"] == 1
    assert done.status == 2


def test_waiting_records_do_not_take_more_memory_than_allowed(tmp_path: Path) -> None:
    """A page for each record, none complete: more than a MiB."""
    event = exec_event(1 << 22 | 9, START, 0, [b"x" * 800] * 2000, per_record=3)
    instance = Instance(tmp_path)
    instance.add(0, *event.records()[:-1])
    instance.add_events(1, [close(2, START + 1, 1)])
    done = replay(instance.write(), "--memory", "1")
    assert done.text == close(2, START + 1, 1).lines
    assert (done.status, done.stats["given_up_events"]) == (2, 1)
    assert "--memory" in done.messages


def test_lines_of_the_environment_share_a_upid_and_stay_whole(tmp_path: Path) -> None:
    """Their header says upid 0, whatever the task: a later one proves nothing."""
    one = exec_event(0, START, 0, ARGV[:3], per_record=1)
    other = exec_event(0, START + 1, 1, ARGV[:2], per_record=1)
    instance = Instance(tmp_path)
    instance.add_events(1, [other])
    instance.add_events(0, [one])
    done = replay(instance.write())
    assert done.text == one.lines + other.lines


@given(seed=st.integers(0, 2**32), n_cpus=st.integers(1, 5), per_record=st.integers(1, 4))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_distribution_gives_each_event_once_and_by_time(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n_cpus: int, per_record: int
) -> None:
    chance = random.Random(seed)
    events = []
    instance = Instance(tmp_path_factory.mktemp("instance"))
    for at in range(60):
        time_ns = START + at * chance.choice([1000, 40_000_000])
        upid = chance.randrange(1, 6) << 22 | at
        if chance.random() < 0.3:
            argv = [b"x" * chance.randrange(700) for _ in range(chance.randrange(1, 9))]
            event = exec_event(upid, time_ns, 0, argv, per_record)
        else:
            event = close(upid, time_ns, 0)
        events.append(event)
        for record in event.records():
            instance.add(chance.randrange(n_cpus), record)
    done = replay(instance.write())
    assert done.status == 0
    assert sorted(done.text.splitlines()) == sorted(lines(events).splitlines())
    for event in events:
        assert event.lines in done.text
