# SPDX-License-Identifier: Apache-2.0
"""The CPU that processes use now, from /proc/PID/stat (proc_pid_stat(5))."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

TICKS = os.sysconf("SC_CLK_TCK")
#: utime and stime, counted behind the name, which may hold anything
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
