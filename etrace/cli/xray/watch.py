# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows while a command of `etrace xray` works for more than a second.

The native readers count the bytes that they have read; a thread looks at the count. What comes
before (unpacking) and after (names, sorting) has no measure and only shows that it goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack

from etrace.cli.terminal.progress import PATIENCE_SECONDS, nothing, progress

LOOK_SECONDS = 0.1


class Watch:
    """A context manager; draws on standard error, nothing where that is no terminal."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._position: Sequence[int] = (0, 0)
        self._phase = ""
        self._is_told = False

    def __enter__(self) -> Watch:
        self._draw = self._stack.enter_context(progress(patience_seconds=self._patience_seconds))
        if self._draw is not nothing:
            looker = threading.Thread(target=self._look, daemon=True)
            looker.start()
            self._stack.callback(looker.join)
            self._stack.callback(self._is_over.set)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, position: Sequence[int]) -> None:
        """Show a count that changes: (bytes read, of how many; 0 before it is known)."""
        self._position = position

    def report(self, what: str, done: int, total: int) -> None:
        """Show what is known better than the position says it, from now on."""
        with self._lock:
            self._is_told = True
            self._change("")
            self._draw(what, done, total)

    def stop(self) -> None:
        """Clear the screen: something else is shown now."""
        self._stack.close()

    def _change(self, phase: str) -> None:
        if self._phase and self._phase != phase:
            self._draw(self._phase, 1, 1)  # it is done with
        self._phase = phase

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            with self._lock:
                if self._is_told:
                    return
                done, total = self._position
                if total > 0 and done < total:
                    self._change("read")
                    self._draw("read", done, total)
                else:
                    self._change("open" if not total else "work")
                    self._draw(self._phase, 0, None)
