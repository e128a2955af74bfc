# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal: types, waits for what appears, and gives up after a while."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from trying import LIMIT_S

CTRL_C = "\x03"
CTRL_Z = "\x1a"
CTRL_D = "\x04"


def _foreground(terminal: int) -> set[str]:
    """Return the names of the processes in the foreground of a terminal, given its master."""
    group, names = os.tcgetpgrp(terminal), set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            head, _, tail = stat.read_text().rpartition(")")
            if int(tail.split()[2]) == group:
                names.add(head.partition("(")[2])
    return names


def wait_for_program(terminal: int, name: str, seconds: float = LIMIT_S) -> None:
    """Wait until a program of this name runs in the foreground of a terminal."""
    end = time.monotonic() + seconds
    while name not in (found := _foreground(terminal)):
        assert time.monotonic() < end, f"no {name} within {seconds} s, only {sorted(found)}"
        time.sleep(0.01)


class Terminal:
    """A program in a session of its own with a terminal as its standard streams."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self.fd, slave = pty.openpty()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(slave)
        self.seen = ""
        self.log = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

    def type(self, text: str) -> None:
        """Type `text`, unchanged."""
        os.write(self.fd, text.encode())

    def line(self, text: str) -> None:
        """Type a line."""
        self.type(text + "\n")

    def wait_for(self, pattern: str, seconds: float = LIMIT_S) -> str:
        """Wait until what appeared since the last match has `pattern`; return the match."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen, re.MULTILINE)
            if match:
                self.seen = self.seen[match.end() :]
                return match[0]
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} within {seconds} s on the terminal:\n{self.log}"
            if select.select([self.fd], [], [], left)[0]:
                self._read()

    def wait_for_program(self, name: str) -> None:
        """Wait until a program of this name runs in the foreground."""
        wait_for_program(self.fd, name)

    def _read(self) -> None:
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: the last program has closed the terminal
            data = b""
        assert data, f"the terminal was closed:\n{self.log}"
        text = data.decode(errors="replace").replace("\r", "")
        self.seen += text
        self.log += text

    def end(self, seconds: float = LIMIT_S) -> int:
        """Wait for the program to end and return its status."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self._read()
                except AssertionError:
                    time.sleep(0.05)
        return self.process.wait(timeout=max(0.1, end - time.monotonic()))
