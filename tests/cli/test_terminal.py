# SPDX-License-Identifier: Apache-2.0
"""Progress bars and the live row: on a terminal after a while, whole fields, no unwanted colour."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import sys
import termios
from fcntl import ioctl
from struct import pack

import pytest

from etrace.capture.backend import Progress
from etrace.cli import terminal
from etrace.cli.etrace.run import status_fields

FIELDS = ("etrace  0:07", "1 process (1 live)", "12 commands", "1 open", "1.5 MB")


def test_fields_agree_with_their_numbers() -> None:
    assert status_fields(Progress(1, 1, 12, 1, 1_500_000), 7.9) == FIELDS


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (80, " etrace  0:07  1 process (1 live)  12 commands  1 open  1.5 MB"),
        (62, " etrace  0:07  1 process (1 live)  12 commands  1 open  1.5 MB"),
        (61, " etrace  0:07  1 process (1 live)  12 commands  1 open"),
        (33, " etrace  0:07  1 process (1 live)"),
        (32, " etrace  0:07"),
        (5, ""),
    ],
)
def test_a_narrow_row_drops_whole_fields(columns: int, row: str) -> None:
    assert terminal.fitting(FIELDS, columns) == row.ljust(columns)


@pytest.mark.parametrize(("no_color", "is_reversed"), [("", True), ("1", False)])
def test_no_color_is_honoured(
    monkeypatch: pytest.MonkeyPatch, no_color: str, is_reversed: bool
) -> None:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, pack("HHHH", 10, 80, 0, 0))
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(terminal, "in_foreground", lambda: True)
    with os.fdopen(slave, "w") as stream, terminal.StatusLine() as line:
        monkeypatch.setattr(sys, "stderr", stream)
        line.show(FIELDS)
        line._give_back()
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(master, 65536):
            shown += chunk
    os.close(master)
    assert b"etrace  0:07  1 process" in shown
    assert (terminal.REVERSE.encode() in shown) == is_reversed


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, patience: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress(patience_seconds=patience) as update:
        for done in range(5):
            update("counting", done, 5)
    return stream.getvalue()


def test_a_terminal_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "counting" in drawn(FakeTerminal(), monkeypatch, 0.0)


def test_what_is_soon_over_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(FakeTerminal(), monkeypatch, 60.0) == ""


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(io.StringIO(), monkeypatch, 0.0) == ""
