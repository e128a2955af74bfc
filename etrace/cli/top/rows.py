# SPDX-License-Identifier: Apache-2.0
"""What `etrace top` shows -> rows of text that fit a terminal; the CPU that processes use now."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from etrace.cli.ending import printable
from etrace.cli.top.running import Process, Running

INDENT = 2
#: a deeper tree moves no further to the right
MAX_DEPTH = 12


class Look(Enum):
    """How a row looks."""

    PLAIN = 0
    HEAD = 1
    WRONG = 2


class Row(NamedTuple):
    """One row."""

    text: str
    look: Look = Look.PLAIN


def head(running: Running, per_second: float, is_writing: bool) -> list[Row]:
    """Return the head rows: counts, each row shorter than 60 columns."""
    n_programs = sum(bool(each.argv) for each in running.processes.values())
    state = "" if is_writing else "  the build has ended"
    first = f"{duration(running.now_ns - running.began_ns)}  {n_programs} running{state}"
    second = f"{running.n_finished} finished  {per_second:.0f}/s  {running.n_failed} failed"
    return [Row(first, Look.HEAD), Row(second, Look.WRONG if running.n_failed else Look.HEAD)]


def processes(running: Running, shares: Mapping[int, float], search: str) -> list[Row]:
    """Return a row for each process whose name holds `search`, below its parents."""
    found = []
    for depth, process in running.tree():
        label = running.label(process)
        if search in label:
            indent = " " * INDENT * min(depth if not search else 0, MAX_DEPTH)
            found.append(Row(_row(running, process, shares, f"{indent}{label}")))
    return found


def _row(running: Running, process: Process, shares: Mapping[int, float], name: str) -> str:
    share = shares.get(process.pid)
    percent = "" if share is None else f"{100 * share:.0f}%"
    took = duration(running.now_ns - process.began_ns)
    return f"{process.pid:>7} {percent:>5} {took:>7}  {name}"


def failures(running: Running, search: str) -> list[Row]:
    """Return a row for each program that failed, the last one first."""
    return [
        Row(
            f"{each.pid:>7} {each.status:>5} {_ago(running, each.at_ns):>7}  {each.label}",
            Look.WRONG,
        )
        for each in reversed(running.failures)
        if search in each.label
    ]


def _ago(running: Running, at_ns: int) -> str:
    return f"-{duration(running.now_ns - at_ns)}"


def duration(ns: int) -> str:
    """Return a duration in at most seven columns."""
    seconds = ns / 1e9
    if seconds < 100:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 100 else f"{minutes // 60}h{minutes % 60:02}m"


def fitted(rows: Sequence[Row], columns: int) -> list[Row]:
    """Return rows without control characters, cut to the width of the terminal."""
    return [Row(printable(row.text.replace("\n", " "))[:columns], row.look) for row in rows]


# ---- CPU: /proc/PID/stat, proc_pid_stat(5) ----

TICKS = os.sysconf("SC_CLK_TCK")
#: utime and stime, counted after the name, which may hold anything
UTIME, STIME = 11, 12


def _seconds(pid: int) -> float | None:
    """Return the CPU time of a process; None when it has ended or is another namespace's."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  a thousand times a second
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[UTIME]) + int(fields[STIME])) / TICKS


class Cpu:
    """Shares of a CPU since the last look."""

    def __init__(self) -> None:
        self._before: dict[int, float] = {}
        self._at = time.monotonic()

    def look(self, pids: Iterable[int]) -> dict[int, float]:
        """Return the share of each process that was there at the last look as well, 1 for a CPU."""
        now = {pid: seconds for pid in pids if (seconds := _seconds(pid)) is not None}
        at = time.monotonic()
        passed = max(at - self._at, 1 / TICKS)
        shares = {
            pid: max(0.0, seconds - self._before[pid]) / passed
            for pid, seconds in now.items()
            if pid in self._before
        }
        self._before, self._at = now, at
        return shares
