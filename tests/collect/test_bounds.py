# SPDX-License-Identifier: Apache-2.0
"""What a collection may cost, however much comes at once and however much of it is lost."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from collect.collector import N_CPUS, Live, close, program, replay
from collect.ring_buffer import Event, Instance, entry, exec_event, page, plain_event
from failing_calls import preloading
from trying import until

START = 72_000_000_000
MIB = 1 << 20
MEMORY_MIB = 4
PAGES = 8 * MEMORY_MIB * MIB // 4096  # eight times as much as may be held


def large(time_ns: int, cpu: int) -> Event:
    """Return an event that fills most of a page."""
    values = {"flags": 0, "mode": 0, "fd": 3, "size": 0, "argsize": 0}
    return plain_event(1 << 22 | cpu, time_ns, cpu, "New_proc", {**values, "PI": b"x" * 2500})


def peak(tracefs: Path, *options: str, lines: bytes) -> int:
    """Collect until all is written; return the bytes of memory that it had at most."""
    out = tracefs / "out"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [program(), "--tracefs", tracefs, *options], stdout=file,
            env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"},
        )  # fmt: skip
    with process:
        until(lambda: out.stat().st_size >= len(lines))
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(signal.SIGTERM)
    assert (process.returncode, out.read_bytes()) == (0, lines)
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def instance(folder: Path, n: int, cpus: int = 1) -> tuple[Path, bytes]:
    made = Instance(folder / "instances/etrace")
    events = [large(START + at * 1000, at % cpus) for at in range(n)]
    for event in events:
        made.add_events(event.cpu, [event])
    return made.write(), b"".join(event.lines for event in events)


def test_one_full_buffer_does_not_take_more_memory_than_allowed(tmp_path: Path) -> None:
    peaks = []
    for name, n in (("small", 1), ("large", PAGES)):
        folder = tmp_path / name
        _, lines = instance(folder, n)
        peaks.append(peak(folder, "--memory", str(MEMORY_MIB), lines=lines))
    assert peaks[1] - peaks[0] < 3 * MEMORY_MIB * MIB  # the output's buffer as well


@pytest.mark.parametrize("cpus", [2, 5])
def test_little_memory_does_not_cost_the_order(tmp_path: Path, cpus: int) -> None:
    """All is within one stretch of time: a CPU alone has more than may be held."""
    path, lines = instance(tmp_path, 2000, cpus)
    done = replay(path, "--memory", "1")
    assert done.text == lines
    assert (done.status, done.stats["unordered_events"]) == (0, 0)


def test_a_cpu_that_is_ahead_leaves_room_for_the_others(tmp_path: Path) -> None:
    made = Instance(tmp_path / "i")
    events = [large(START + at, 0) for at in range(900)]
    events += [large(START + 1000 + at, 1) for at in range(900)]
    for event in events:
        made.add_events(1 - event.cpu, [event])  # the later ones are read first
    done = replay(made.write(), "--memory", "1")
    assert done.text == b"".join(event.lines for event in events)
    assert (done.status, done.stats["unordered_events"]) == (0, 0)


@pytest.mark.parametrize("upid", [0, 1 << 22])
def test_an_event_costs_the_same_however_many_are_unfinished(tmp_path: Path, upid: int) -> None:
    """Lost records must not make the collector slow: it would lose more."""
    unfinished, plain = 8000, 40_000
    argv = [b"a", b"b"]
    costs = []
    for n in (0, unfinished):
        made = Instance(tmp_path / f"{n}")
        for at in range(n):
            event = exec_event(upid and upid + at, START + at, 0, argv, per_record=1)
            made.add(0, event.records()[0])
        for at in range(plain):
            made.add_events(0, [close(0, START + unfinished + at, upid=5)])
        path = made.write()
        stats = replay(path).stats
        assert (stats["events"], stats["incomplete_events"]) == (plain, n)
        costs.append(min(cpu_seconds(path, tmp_path) for _ in range(3)))
    assert costs[1] < 8 * costs[0], costs


def cpu_seconds(path: Path, folder: Path) -> float:
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([program(), "--raw", path], stdout=out, stderr=out)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def test_an_event_of_the_environment_is_given_up_after_a_while(tmp_path: Path) -> None:
    """Its upid is 0, so that no later event of its task shows that the rest was lost."""
    event = exec_event(0, START, 0, [b"a", b"b"], per_record=1)
    others = [close(0, START + at * 10_000_000, upid=5) for at in range(1, 500)]
    *first, last = event.records()
    made = Instance(tmp_path / "i")
    made.add(0, *first)
    made.add_events(0, others)
    made.add(0, last)
    done = replay(made.write())
    assert done.text == b"".join(other.lines for other in others)
    assert done.stats["incomplete_events"] >= 1
    assert done.status == 2


def test_an_event_of_a_dead_task_is_given_up_when_its_number_is_used_again(tmp_path: Path) -> None:
    """Its Exit was lost as well: it would hold memory to the end."""
    dead, alive = 1 << 22 | 77, 1 << 22 | 78
    made = Instance(tmp_path / "i")
    late = []
    for upid, at in ((dead, 0), (alive, 1)):
        event = exec_event(upid, START + at, 0, [b"a", b"b"], per_record=1)
        made.add(0, event.records()[0])
        late.append(event)
    others = [close(0, START + at * 10_000_000, upid=5) for at in range(1, 500)]
    others[200] = close(0, others[200].time_ns, upid=2 << 22 | 77)
    made.add_events(0, others)
    for event in late:
        made.add(0, *event.records()[1:])
    done = replay(made.write())
    assert done.text.count(late[1].lines) == 1
    rest = done.text.replace(late[1].lines, b"")
    assert rest == b"".join(other.lines for other in others)
    assert done.stats["incomplete_events"] == 1


def test_losses_are_counted_after_somebody_emptied_the_buffer(tmp_path: Path) -> None:
    with ExitStack() as stack:
        live = Live(tmp_path, stack)
        stats = live.instance / "per_cpu/cpu1/stats"  # in place: the collector has it open
        assert live.process.stderr
        for dropped in (17, 5):
            stats.write_text(f"entries: 0\noverrun: 0\ndropped events: {dropped}\n")
            if dropped == 17:
                assert b"17 records were lost" in live.process.stderr.readline()
        live.end()
        assert live.stats()["dropped_records"] == 17 + 5


def failing_reads(n: int) -> str:
    return f"""
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t read(int fd, void *to, size_t size)
{{
	static int n;
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && n < {n}) {{
		n++;
		errno = ENOMEM;
		return -1;
	}}
	return syscall(SYS_read, fd, to, size);
}}
"""


def test_a_read_that_fails_for_want_of_memory_is_tried_again(tmp_path: Path) -> None:
    failures = 40
    with ExitStack() as stack:
        live = Live(tmp_path, stack, env=preloading(tmp_path, failing_reads(failures)))
        events = [close(cpu) for cpu in range(N_CPUS)]
        for event in events:
            live.write(event.cpu, event)
        assert live.end() == b"".join(event.lines for event in events)
        assert live.process.returncode == 0
        assert live.stats()["failed_reads"] == failures
        assert live.messages().count("it is tried again") <= 5 * N_CPUS  # 1, 2, 4, 8, 16


def test_reads_that_fail_for_ever_do_not_keep_it_from_ending(tmp_path: Path) -> None:
    with ExitStack() as stack:
        live = Live(tmp_path, stack, env=preloading(tmp_path, failing_reads(10**9)))
        live.end()
        assert live.process.returncode == 2
        assert live.stats()["damaged_pages"] == N_CPUS


def test_a_loss_on_every_page_is_not_said_on_every_page(tmp_path: Path) -> None:
    made = Instance(tmp_path / "i")
    made.write_description()
    events = [close(0, START + at) for at in range(200)]
    pages = [page(b"".join(map(entry, event.records())), missed=3) for event in events]
    (made.cpu(0) / "trace_pipe_raw").write_bytes(b"".join(pages))
    done = replay(made.path)
    said = [line for line in done.messages.splitlines() if "could be read" in line]
    assert done.stats["overwritten_records"] == 600
    assert "cpu 0: 3 records" in said[0]
    assert len(said) == 8  # of 3, 6, 12, ... 384 records
