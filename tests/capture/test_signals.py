# SPDX-License-Identifier: Apache-2.0
"""Signals while etrace waits."""

from __future__ import annotations

import os
import signal
import threading

from etrace.capture import signals


def test_a_handler_runs_while_a_descriptor_has_nothing_to_read() -> None:
    reader, writer = os.pipe()
    old = signal.signal(signal.SIGUSR1, lambda _number, _frame: os.write(writer, b"seen"))
    # the signal goes to the other thread, so that it interrupts no system call of this one
    other = threading.Thread(target=signal.raise_signal, args=(signal.SIGUSR1,))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {})
    try:
        with signals.waking() as wait:
            other.start()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
            wait(reader)
        assert os.read(reader, 4096) == b"seen"
    finally:
        other.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGUSR1, old)
        os.close(reader)
        os.close(writer)
