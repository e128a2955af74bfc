# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error: on a terminal, after a second, and gone at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

PATIENCE_SECONDS = 1.0


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total); it draws nothing when nobody is there to look."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    began = time.monotonic()
    with ExitStack() as stack:
        shown: list[tuple[Any, Any]] = []

        def update(done: int, total: int) -> None:
            if not shown and time.monotonic() - began < PATIENCE_SECONDS:
                return
            if not shown:
                from rich.console import Console
                from rich.progress import Progress

                bars = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                shown.append((bars, bars.add_task(what, total=total)))
            bars, task = shown[0]
            bars.update(task, completed=done, total=total)

        yield update
