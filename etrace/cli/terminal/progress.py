# SPDX-License-Identifier: Apache-2.0
"""Progress bars on standard error: on a terminal only, after a while, and gone at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

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
