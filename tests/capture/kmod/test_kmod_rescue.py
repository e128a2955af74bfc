# SPDX-License-Identifier: Apache-2.0
"""A killed etrace_cat and its successor: the real program, on pipes instead of ring buffers."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from collect.collector import close, content, decompressed, program
from collect.ring_buffer import Event, Instance
from fake_kernel import Machine, begin, begun, ignore, kill

from etrace.capture.kmod import teardown
from etrace.capture.kmod.session import MAX_SUCCESSORS, Session
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Counter, Phase

pytestmark = pytest.mark.root
SECONDS = 30.0


@pytest.fixture
def pipes(machine: Machine) -> Iterator[list[int]]:
    """Give the machine the real collector and buffers; return their pipes once they are there.

    Held open here, they keep what a killed collector has not read.
    """
    shutil.copy(program(), machine.root / "etrace_cat")
    made: list[int] = []
    mkdir = machine.host.tracefs.mkdir

    def make_instance(path: Path) -> None:
        mkdir(path)
        Instance(path).write_description()
        for cpu in sorted((path / "per_cpu").iterdir()):
            os.mkfifo(cpu / "trace_pipe_raw")
            made.append(os.open(cpu / "trace_pipe_raw", os.O_RDWR))

    tracefs = dataclasses.replace(machine.host.tracefs, mkdir=make_instance)
    machine.host = dataclasses.replace(machine.host, tracefs=tracefs)
    yield made
    for fd in made:
        os.close(fd)


def wait_for(path: Path, size: int) -> None:
    deadline = time.monotonic() + SECONDS
    while path.stat().st_size <= size:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def traced_twice(machine: Machine, pipes: list[int], folder: Path, *, zstd: bool) -> list[Event]:
    """Have an event collected, the collector killed in a write and an event left in the buffer."""
    first = close(0)
    begin(machine, folder, zstd=zstd)
    trace = folder / ".nfsdb.capturing"
    size = trace.stat().st_size
    os.write(pipes[0], content(first))
    wait_for(trace, size)
    kill(machine)
    with trace.open("ab") as file:
        file.write(trace.read_bytes()[: size - 5] if zstd else close(0).lines[:-1])
    second = close(0)
    os.write(pipes[0], content(second))
    return [first, second]


@pytest.mark.parametrize("zstd", [False, True])
def test_a_trace_goes_on_after_what_is_whole(
    machine: Machine, pipes: list[int], tmp_path: Path, zstd: bool
) -> None:
    events = traced_twice(machine, pipes, tmp_path, zstd=zstd)
    machine.kernel.counters = {Counter.RECORDS: 5}
    ending = teardown.end(machine.host, ignore)
    text = decompressed(ending.trace) if zstd else ending.trace.read_bytes()
    (head, *lines) = text.splitlines(keepends=True)
    assert head.startswith(b"INITCWD=")
    assert lines[:2] == [event.lines for event in events]
    assert lines[2:] == [b"CPU:0 [LOST %d EVENTS]\n" % ending.lost]
    assert "recovered 1 record" in ending.warnings[0]
    assert machine.changes() == []


@pytest.mark.parametrize("zstd", [False, True])
def test_a_trace_is_cut_though_the_buffers_are_gone(
    machine: Machine, pipes: list[int], tmp_path: Path, zstd: bool
) -> None:
    first, _ = traced_twice(machine, pipes, tmp_path, zstd=zstd)
    shutil.rmtree(machine.instance)
    machine.kernel.counters = {Counter.RECORDS: 5}
    ending = teardown.end(machine.host, ignore)
    text = decompressed(ending.trace) if zstd else ending.trace.read_bytes()
    lines = text.splitlines(keepends=True)[1:]
    assert lines == [first.lines, b"CPU:0 [LOST %d EVENTS]\n" % ending.lost]
    assert ending.lost in {4, 5}  # the last counts may be older than the last write


def ended(pid: int, number: int) -> None:
    """Send a signal to a collector and wait for its end; the status stays to be taken."""
    os.kill(pid, number)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def driven(machine: Machine, folder: Path) -> tuple[Session, list[str]]:
    """Begin a session that this process drives and so holds."""
    return begun(machine, folder, driver=process.identify(os.getpid()))


def test_a_killed_collector_gets_a_successor(
    machine: Machine, pipes: list[int], tmp_path: Path
) -> None:
    own, said = driven(machine, tmp_path)
    trace = tmp_path / ".nfsdb.capturing"
    first, second, third = close(0), close(0), close(0)
    for event in (first, second):
        size = trace.stat().st_size
        os.write(pipes[0], content(event))
        wait_for(trace, size)
        killed = own.state.collector
        ended(killed.pid, signal.SIGKILL)
        own.tend()
        assert own.state.collector != killed
        assert machine.kernel.status().phase is Phase.RUNNING
    os.write(pipes[0], content(third))
    machine.kernel.counters = {Counter.RECORDS: 5}
    ending = own.end({})
    own.close()
    lines = ending.trace.read_bytes().splitlines(keepends=True)[1:]
    assert lines[:3] == [event.lines for event in (first, second, third)]
    assert ending.stats["collectors"] == 3
    assert [loss.reason for loss in ending.losses] == [
        "a collector that was killed had read them and not written them"
    ]
    assert [text.partition(";")[0] for text in said] == ["the collector was killed (signal 9)"] * 2
    assert machine.changes() == []


@pytest.mark.parametrize(
    ("signals", "n_successors"),
    [([signal.SIGTERM], 0), ([signal.SIGKILL] * (MAX_SUCCESSORS + 1), MAX_SUCCESSORS)],
    ids=["ended by itself", "killed again and again"],
)
def test_a_collector_that_ends_without_a_successor_ends_the_session(
    machine: Machine,
    pipes: list[int],
    tmp_path: Path,
    signals: list[signal.Signals],
    n_successors: int,
) -> None:
    own, said = driven(machine, tmp_path)
    for number in signals:
        last = own.state.collector
        ended(last.pid, number)
        own.tend()
    assert own.state.collector == last
    assert machine.kernel.status().phase is Phase.STOPPED
    assert own.end({}).trace.parent == tmp_path
    assert (len(said), machine.changes()) == (n_successors, [])
