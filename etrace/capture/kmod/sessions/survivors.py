# SPDX-License-Identifier: Apache-2.0
"""Which traced processes still run: those whose SchedFork is in the trace and whose Exit is not.

Read from the trace, because only it knows every process exactly: an orphan has no parent to be
found by, and a number may have been given to somebody else since (a upid never is).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from etrace.capture.kmod.system import process

PID_MASK = (1 << 22) - 1
LIFE = re.compile(rb"^(\d+),\d+,\d+,\d+!(?:SchedFork\|pid=(\d+)|Exit\|)", re.MULTILINE)


PIECE_BYTES = 1 << 20


def _pieces(trace: Path) -> Iterator[bytes]:
    """Yield a trace in pieces of whole lines; nothing of what is not a file."""
    fd = os.open(trace, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as stream:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        rest = b""
        while piece := stream.read(PIECE_BYTES):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            yield whole + newline


def alive_upids(trace: Path) -> set[int]:
    """Return the upids of tasks that were made and did not end."""
    alive: set[int] = set()
    ended: set[int] = set()
    for piece in _pieces(trace):
        for found in LIFE.finditer(piece):
            if child := found[2]:
                alive.add(int(child))
            else:
                ended.add(int(found[1]))
    return alive - ended


def names(trace: Path) -> list[str]:
    """Return `name (pid)` of each process of the trace that still runs; threads are not named."""
    pids = sorted(upid & PID_MASK for upid in alive_upids(trace))
    return [f"'{process.name(pid)}' ({pid})" for pid in pids if process.is_leader(pid)]
