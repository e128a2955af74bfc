# SPDX-License-Identifier: Apache-2.0
"""Who may run: several beside each other, or one alone when all others have ended or wait too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Turns:
    """Hands out turns to threads; a thread asks for `alone` only within its `beside`."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._n_running = 0  # whoever is alone counts
        self._is_alone = False

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run beside others; begins when nobody is alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_alone)
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
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._n_running == 0)
            self._n_running, self._is_alone = 1, True
        try:
            yield
        finally:
            with self._changed:
                self._is_alone = False
                self._changed.notify_all()
