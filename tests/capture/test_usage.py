# SPDX-License-Identifier: Apache-2.0
"""What processes used, by ptrace: against getrusage(2) of the same program, and of known work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trace_lines
from backends import Captured, capture

#: `parent`, `both` and what else its MODE may be
SPEND = Path(__file__).parents[1] / "vm/guest/spend.c"
WRITTEN = 300_000
HELD = 64 << 20
#: executes itself again, burns CPU time, holds memory, reads, writes, and says what it used
WORK = f"""
import os, resource, sys, threading, time
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
held = bytearray({HELD})
held[::4096] = b"1" * len(held[::4096])
def burn():
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
thread = threading.Thread(target=burn)
thread.start()
thread.join()
with open(os.devnull, "wb", buffering=0) as out:
    out.write(bytes({WRITTEN}))
os.waitpid(os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "0"), 0)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, flush=True)
"""


def numbers(data: bytes) -> dict[str, int]:
    fields = (field.partition(b"=") for field in data.removeprefix(b"Usage|").split(b","))
    return {name.decode(): int(value) for name, _, value in fields}


def traced(folder: Path, *options: str) -> Captured:
    work = folder / "work"
    work.mkdir()
    (work / "work.py").write_text(WORK)
    command = [sys.executable, "work.py"]
    captured = capture(command, work, options=options, env=dict(os.environ))
    assert captured.status == 0, captured.stderr.decode()
    return captured


def test_the_numbers_are_those_of_the_process(tmp_path: Path) -> None:
    captured = traced(tmp_path)
    cpu_s, max_rss = map(float, captured.stdout.split())
    trace = trace_lines.parse(captured.trace.read_bytes())
    root = trace.roots()[0]
    first, before, end = [numbers(line.data) for line in trace.usage if line.upid == root]
    assert first["rchar"] == first["maxrss"] == -1
    assert before["maxrss"] == -1
    assert 0 < first["user"] + first["system"] < before["user"] + before["system"]
    assert cpu_s <= (end["user"] + end["system"]) / 1e9  # both threads, and its end
    assert (end["user"] + end["system"]) / 1e9 - cpu_s < cpu_s  # and not its child
    assert HELD < end["maxrss"] <= max(max_rss, HELD) * 2
    assert end["wchar"] - before["wchar"] >= WRITTEN
    assert end["rchar"] > before["rchar"] > 0
    assert end["voluntary"] >= 0
    assert end["forced"] >= 0


def spent(folder: Path, mode: str) -> tuple[trace_lines.Trace, int]:
    """Trace `spend MODE`; return the trace and its task."""
    program = folder / "spend"
    subprocess.run(["gcc", "-pthread", "-o", program, SPEND], check=True)
    captured = capture([program, mode], folder, env=dict(os.environ))
    assert captured.status == 0, captured.stderr.decode()
    trace = trace_lines.parse(captured.trace.read_bytes())
    return trace, trace.roots()[0]


def of_task(trace: trace_lines.Trace, task: int) -> list[dict[str, int]]:
    return [numbers(line.data) for line in trace.usage if line.upid == task]


def children(trace: trace_lines.Trace, task: int) -> list[int]:
    texts = [line.data.partition(b"SchedFork|pid=")[2] for line in trace.of(task)]
    return [int(text) for text in texts if text]


def test_what_children_moved_is_not_their_parents(tmp_path: Path) -> None:
    trace, parent = spent(tmp_path, "parent")
    end = of_task(trace, parent)[-1]
    assert 0 < end["rchar"] < WRITTEN
    assert 0 <= end["wchar"] < WRITTEN
    *movers, never_executed = children(trace, parent)
    assert len(movers) == 2
    for mover in movers:
        assert of_task(trace, mover)[-1]["wchar"] == WRITTEN
    (end,) = of_task(trace, never_executed)
    assert end["maxrss"] == -1  # until it executes it has its parent's memory


def test_what_ended_threads_moved_is_the_processs(tmp_path: Path) -> None:
    trace, task = spent(tmp_path, "both")
    end = of_task(trace, task)[-1]
    assert end["wchar"] == WRITTEN
    assert WRITTEN < end["rchar"] < 2 * WRITTEN


def test_a_thread_that_executes_goes_on_with_the_sums_of_its_process(tmp_path: Path) -> None:
    trace, task = spent(tmp_path, "thread-executes")
    assert len(of_task(trace, task)) == 1  # at its execution: it was replaced
    (thread,) = children(trace, task)
    executed, end = of_task(trace, thread)
    assert 0.04e9 < executed["user"] + executed["system"] < end["user"] + end["system"]
    assert 0 < executed["rchar"] < end["rchar"]
    assert 0 < executed["voluntary"] <= end["voluntary"]


def test_a_usage_has_the_stamp_of_the_line_after_it(tmp_path: Path) -> None:
    trace = trace_lines.parse(traced(tmp_path).trace.read_bytes())
    ends = [line for line in trace.lines if line.data.startswith((b"Exit|", b"New_proc|"))]
    assert {(u.upid, u.time_ns, u.cpu) for u in trace.usage} <= {
        (line.upid, line.time_ns, line.cpu) for line in ends
    }
    exits = [line for line in ends if line.data.startswith(b"Exit|")]
    assert len(trace.usage) == len(ends) - (len(exits) - len({u.upid for u in trace.usage}))


def test_it_can_be_left_out(tmp_path: Path) -> None:
    captured = traced(tmp_path, "--no-usage")
    assert b"Usage" not in captured.trace.read_bytes()


def test_stops_for_the_tracer_are_no_switches(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    opens = "i=0; while [ $i -lt 200 ]; do : < /dev/null; i=$((i+1)); done"
    captured = capture(["sh", "-c", opens], work, env=dict(os.environ))
    trace = trace_lines.parse(captured.trace.read_bytes())
    used = numbers(trace.usage[-1].data)
    assert sum(line.data.startswith(b"Open|") for line in trace.lines) >= 200
    assert 0 <= used["voluntary"] < 200


def test_cpu_time_never_gets_less(tmp_path: Path) -> None:
    """The ticks that divide it into the program's and the kernel's come later than the sum."""
    loop = f"{sys.executable} -c pass; head -c 3000000 /dev/urandom | cksum; true"
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do {loop}; done"
    captured = capture(["sh", "-c", script], tmp_path, env=dict(os.environ))
    trace = trace_lines.parse(captured.trace.read_bytes())
    before: dict[int, tuple[int, int]] = {}
    for line in trace.usage:
        used = numbers(line.data)
        now = (used["user"], used["system"])
        user, system = before.setdefault(line.upid, now)
        assert now[0] >= user, line
        assert now[1] >= system, line
        before[line.upid] = now
    assert len(before) > 30
