# SPDX-License-Identifier: Apache-2.0
"""A trace that is being written -> its new lines, each time somebody asks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from etrace.capture.kmod.system.output import CAPTURING
from etrace.capture.session import TRACE, is_being_written
from etrace.errors import EtraceError

PIECE_BYTES = 1 << 20
#: a longer line is no line of a trace
MAX_LINE_BYTES = 1 << 20


def find(directory: Path) -> Path:
    """Return the trace that is being written in a directory. EtraceError when there is none."""
    for name in (CAPTURING, TRACE):
        trace = directory / name
        if trace.is_file() and is_being_written(trace):
            return trace
    hint = "start a build in another terminal: etrace run -- make"
    if (directory / TRACE).exists():
        hint = f"its build has ended: etrace summary {directory}"
    raise EtraceError(f"{directory}: nothing is being traced here", hint)


class Follower:
    """Reads a growing trace; a line is given when it is whole."""

    def __init__(self, trace: Path) -> None:
        self._fd = os.open(trace, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise EtraceError(f"{trace}: not a file", "name the directory of a trace")
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """Yield what has come since the last time."""
        while piece := os.read(self._fd, PIECE_BYTES):
            *whole, self._rest = (self._rest + piece).split(b"\n")
            self._rest = self._rest if len(self._rest) <= MAX_LINE_BYTES else b""
            yield from whole

    def close(self) -> None:
        """Close the trace."""
        os.close(self._fd)
