# SPDX-License-Identifier: Apache-2.0
"""The live row: whole fields, and no colour where none is wanted."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
import termios
from fcntl import ioctl
from struct import pack

import pytest

from etrace.capture.backend import Progress
from etrace.cli.etrace.run import status_fields
from etrace.cli.terminal import status_line

FIELDS = ("etrace  0:07", "1 process (1 live)", "12 programs", "1 open", "1.5 MB")


def test_fields_agree_with_their_numbers() -> None:
    assert status_fields(Progress(1, 1, 12, 1, 1_500_000), 7.9) == FIELDS


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (80, " etrace  0:07  1 process (1 live)  12 programs  1 open  1.5 MB"),
        (62, " etrace  0:07  1 process (1 live)  12 programs  1 open  1.5 MB"),
        (61, " etrace  0:07  1 process (1 live)  12 programs  1 open"),
        (33, " etrace  0:07  1 process (1 live)"),
        (32, " etrace  0:07"),
        (5, ""),
    ],
)
def test_a_narrow_row_drops_whole_fields(columns: int, row: str) -> None:
    assert status_line.fitting(FIELDS, columns) == row.ljust(columns)


@pytest.mark.parametrize(("no_color", "is_reversed"), [("", True), ("1", False)])
def test_no_color_is_honoured(
    monkeypatch: pytest.MonkeyPatch, no_color: str, is_reversed: bool
) -> None:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, pack("HHHH", 10, 80, 0, 0))
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(status_line, "in_foreground", lambda: True)
    with os.fdopen(slave, "w") as stream, status_line.StatusLine() as line:
        monkeypatch.setattr(sys, "stderr", stream)
        line.show(FIELDS)
        line._give_back()
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(master, 65536):
            shown += chunk
    os.close(master)
    assert b"etrace  0:07  1 process" in shown
    assert (status_line.REVERSE.encode() in shown) == is_reversed
