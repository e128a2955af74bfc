# SPDX-License-Identifier: Apache-2.0
"""Signals while a build is traced, and while the machine is changed for it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
EXIT_SIGNAL = 128


def from_terminal() -> bool:
    """Whether a SIGINT comes from the keyboard; then the whole foreground group got it."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:  # noqa: PTH123  no Path in a handler
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


@contextlib.contextmanager
def forwarded(send: Callable[[int], None]) -> Iterator[None]:
    """Inside the block, leave keyboard signals to the build and forward others."""

    def forward(number: int, _frame: FrameType | None) -> None:
        send(number)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not from_terminal():
            forward(number, frame)

    wanted = {
        signal.SIGINT: interrupt,
        signal.SIGQUIT: interrupt,
        signal.SIGTERM: forward,
        signal.SIGHUP: forward,
    }
    old = {n: signal.getsignal(n) for n in wanted}
    try:
        for number, handler in wanted.items():
            if old[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number, before in old.items():
            signal.signal(number, before)


@contextlib.contextmanager
def waking() -> Iterator[Callable[[int], None]]:
    """Give a function that waits until a descriptor can be read, and lets handlers run meanwhile.

    A handler runs between two steps of Python. A signal just before a read that blocks would have
    to wait for its end.
    """
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait(fd: int) -> None:
        poll = select.poll()
        for each in (fd, reader):
            poll.register(each, select.POLLIN)
        while fd not in dict(poll.poll()):
            with contextlib.suppress(BlockingIOError):
                os.read(reader, 4096)

    try:
        yield wait
    finally:
        signal.set_wakeup_fd(old)
        os.close(reader)
        os.close(writer)


class Deferred:
    """Signals that are pending."""

    def __init__(self) -> None:
        self.number = 0

    def remember(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal: later."""
        self.number = number

    def check(self) -> None:
        """Act on a pending signal: KeyboardInterrupt, or the exit status that a shell gives it."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number:
            raise SystemExit(EXIT_SIGNAL + self.number)


@contextlib.contextmanager
def deferred(again: bool = False) -> Iterator[Deferred]:
    """Inside the block, defer signals to Deferred.check(), so that no step is left half done.

    With `again`, one that came after the last check is raised when the block has ended well.
    """
    pending = Deferred()
    old = {n: signal.getsignal(n) for n in ENDING}
    try:
        for number, before in old.items():
            if before is not signal.SIG_IGN:
                signal.signal(number, pending.remember)
        yield pending
    finally:
        for number, before in old.items():
            signal.signal(number, before)
    if again and pending.number:
        signal.raise_signal(pending.number)
