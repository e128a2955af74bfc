# SPDX-License-Identifier: Apache-2.0
"""Which traced processes still run: those whose SchedFork is in the trace and whose Exit is not.

Read from the trace, because only it knows every process exactly: an orphan has no parent to be
found by, and a number may have been given to somebody else since (a upid never is).
"""

from __future__ import annotations

import re
from pathlib import Path

from etrace.capture.kmod import process

PID_MASK = (1 << 22) - 1
LIFE = re.compile(rb"^(\d+),\d+,\d+,\d+!(?:SchedFork\|pid=(\d+)|Exit\|)", re.MULTILINE)


def alive_upids(trace: bytes) -> set[int]:
    """Return the upids of tasks that were made and did not end."""
    alive: set[int] = set()
    ended: set[int] = set()
    for found in LIFE.finditer(trace):
        if child := found[2]:
            alive.add(int(child))
        else:
            ended.add(int(found[1]))
    return alive - ended


def names(trace: Path) -> list[str]:
    """Return `name (pid)` of each process of the trace that still runs; threads are not named."""
    pids = sorted(upid & PID_MASK for upid in alive_upids(trace.read_bytes()))
    return [f"'{process.name(pid)}' ({pid})" for pid in pids if process.is_leader(pid)]
