# SPDX-License-Identifier: Apache-2.0
"""What moves on a terminal: progress bars, and a status line at its foot."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

# ---- progress bars ----

PATIENCE_SECONDS = 1.0

#: called with what is being done, how much of it is, and how much there is (None: not known)
Report = Callable[[str, int, int | None], None]


def nothing(_what: str, _done: int, _total: int | None) -> None:
    """Report nothing."""


@contextmanager
def progress(
    *, is_wanted: bool = True, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[Report]:
    """Yield a reporter: a bar for each thing while it is being done, after `patience_seconds`."""
    if not is_wanted or sys.stderr is None or not sys.stderr.isatty():
        yield nothing
        return
    began = time.monotonic()
    with ExitStack() as stack:
        bars: list[Any] = []
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int | None) -> None:
            if not bars and time.monotonic() - began < patience_seconds:
                return
            if not bars:
                bars.append(stack.enter_context(_open_bars()))
            if what not in tasks:
                tasks[what] = bars[0].add_task(what, total=total)
            is_going_on = total is None or done < total
            bars[0].update(tasks[what], completed=done, total=total, visible=is_going_on)

        yield report


def _open_bars() -> Any:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True)


# ---- status line ----

SAVE, RESTORE = "\x1b7", "\x1b8"
CLEAR_ROW, CLEAR_BELOW = "\x1b[2K", "\x1b[0J"
REVERSE, PLAIN = "\x1b[7m", "\x1b[0m"
MIN_ROWS = 4


def region(first: int, last: int) -> str:
    """Make rows first..last (from 1) the ones that scroll."""
    return f"\x1b[{first};{last}r"


def wanted() -> bool:
    """Whether standard error is a terminal that understands the sequences."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    return os.environ.get("TERM", "dumb") not in ("dumb", "")


def in_foreground() -> bool:
    """Whether this job is in the foreground of standard error's terminal."""
    try:
        return os.tcgetpgrp(sys.stderr.fileno()) == os.getpgrp()
    except OSError:
        return False


def fitting(fields: Sequence[str], columns: int) -> str:
    """Return a row of the first fields that fit whole."""
    row = ""
    for field in fields:
        longer = f"{row}  {field}" if row else f" {field}"
        if len(longer) > columns:
            break
        row = longer
    return row.ljust(columns)


class StatusLine:
    """Context manager: `show(fields)` replaces the row, leaving restores the terminal.

    The last row is taken out of the scrolling region (DECSTBM, as apt does it), so that what the
    build prints scrolls above it. Sequences: ECMA-48 and the VT100 manual. In the background, and
    while the job is stopped, the terminal belongs to another program: nothing is drawn.
    """

    def __init__(self) -> None:
        self._rows = 0  #: 0 while the row is not taken
        self._columns = 0
        self._started = time.monotonic()
        self._old: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        handlers = {signal.SIGWINCH: self._on_resize, signal.SIGTSTP: self._on_stop}
        self._old = {number: signal.getsignal(number) for number in handlers}
        for number, handler in handlers.items():
            if self._old[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        self._take_row()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._give_back()

    @property
    def elapsed(self) -> float:
        """Seconds since the line was made."""
        return time.monotonic() - self._started

    def show(self, fields: Sequence[str]) -> None:
        """Print fields in the row, those that fit; nothing while in the background."""
        if not in_foreground():
            self._rows = 0
            return
        if not self._rows:
            self._take_row()
        if self._rows:
            begin, end = ("", "") if os.environ.get("NO_COLOR") else (REVERSE, PLAIN)
            row = fitting(fields, self._columns)
            self._write(f"{SAVE}\x1b[{self._rows};1H{begin}{row}{end}{RESTORE}")

    def _write(self, text: str) -> None:
        try:
            os.write(sys.stderr.fileno(), text.encode())
        except OSError:
            self._rows = 0  # the terminal went away; the build goes on

    def _take_row(self) -> None:
        if not in_foreground():
            return
        try:
            self._columns, rows = os.get_terminal_size(sys.stderr.fileno())
        except OSError:
            return
        if rows >= MIN_ROWS:
            self._rows = rows
            # a newline first: the text of the last row moves up rather than being written over
            self._write(f"\n{SAVE}{region(1, rows - 1)}{RESTORE}\x1b[1A")

    def _give_back(self) -> None:
        if self._rows and in_foreground():
            row = self._rows
            self._write(f"{SAVE}{region(1, row)}\x1b[{row};1H{CLEAR_ROW}{RESTORE}{CLEAR_BELOW}")
        self._rows = 0

    def _on_resize(self, _number: int, _frame: FrameType | None) -> None:
        self._give_back()
        self._take_row()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # stops here; the next show() takes the row again
        signal.signal(number, self._on_stop)
