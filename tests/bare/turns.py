# SPDX-License-Identifier: Apache-2.0
"""A lock for plans: many run together, or one runs alone when the others have ended or wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Turns:
    """Hands out turns to threads; call `alone` only inside `beside`."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._n_running = 0  # including the thread that is alone
        self._n_alone = 0  # threads that are alone or wait to be

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run beside others; begins when no thread is alone or waits to be."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_alone == 0)
            self._n_running += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run when nobody else does: others have ended, or wait to be alone, too."""
        with self._changed:
            self._n_running -= 1
            self._n_alone += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._n_running == 0)
            self._n_running = 1
        try:
            yield
        finally:
            with self._changed:
                self._n_alone -= 1
                self._changed.notify_all()
