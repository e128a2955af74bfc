# SPDX-License-Identifier: Apache-2.0
"""A status line at the foot of the terminal that leaves the build's output alone.

The last row is taken out of the scrolling region (DECSTBM, as apt does it), so that what the build
prints scrolls above it. Sequences: ECMA-48 and the VT100 manual.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import Self

SAVE, RESTORE = "\x1b7", "\x1b8"
CLEAR_ROW, CLEAR_BELOW = "\x1b[2K", "\x1b[0J"
REVERSE, PLAIN = "\x1b[7m", "\x1b[0m"
MIN_ROWS = 4


def region(first: int, last: int) -> str:
    """Make rows first..last (from 1) the ones that scroll."""
    return f"\x1b[{first};{last}r"


def wanted() -> bool:
    """Whether standard error is a terminal that understands the sequences."""
    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and os.environ.get("TERM", "dumb") not in ("dumb", "")
    )


class StatusLine:
    """Context manager: `show(text)` replaces the row, leaving restores the terminal."""

    def __init__(self) -> None:
        self._rows = 0
        self._columns = 0
        self._started = time.monotonic()
        self._old_handler: signal.Handlers | object = signal.SIG_DFL

    def __enter__(self) -> Self:
        self._old_handler = signal.getsignal(signal.SIGWINCH)
        signal.signal(signal.SIGWINCH, self._on_resize)
        self._take_row()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGWINCH, self._old_handler)  # type: ignore[arg-type]
        self._give_back()

    @property
    def elapsed(self) -> float:
        """Seconds since the line was made."""
        return time.monotonic() - self._started

    def show(self, text: str) -> None:
        """Print `text` in the row, cut to its width."""
        if self._rows < MIN_ROWS:
            return
        cut = text[: self._columns].ljust(self._columns)
        self._write(f"{SAVE}\x1b[{self._rows};1H{REVERSE}{cut}{PLAIN}{RESTORE}")

    def _write(self, text: str) -> None:
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except OSError:
            self._rows = 0  # the terminal went away; the build goes on

    def _take_row(self) -> None:
        try:
            self._columns, self._rows = os.get_terminal_size(sys.stderr.fileno())
        except OSError:
            self._rows = 0
        if self._rows >= MIN_ROWS:
            # a newline first: the text of the last row moves up rather than being written over
            self._write(f"\n{SAVE}{region(1, self._rows - 1)}{RESTORE}\x1b[1A")

    def _give_back(self) -> None:
        if self._rows >= MIN_ROWS:
            row = self._rows
            self._write(f"{SAVE}{region(1, row)}\x1b[{row};1H{CLEAR_ROW}{RESTORE}{CLEAR_BELOW}")

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        self._give_back()
        self._take_row()
