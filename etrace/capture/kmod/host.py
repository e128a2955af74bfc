# SPDX-License-Identifier: Apache-2.0
"""The machine that a session touches, and its collector, which is held until it may read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etrace.capture.kmod import collector, ending
from etrace.capture.kmod.state import State, StateDirectory
from etrace.capture.kmod.system.control import Control
from etrace.capture.kmod.system.module import Modules
from etrace.capture.kmod.system.tracefs import Tracefs

#: gets messages for people
Say = Callable[[str], None]
#: raises when a signal came that ends the command
Check = Callable[[], None]


def never() -> None:
    """Check for signals that are to wait."""


def silent(_text: str) -> None:
    """Print nothing."""


def _connect() -> Control:
    from etrace.capture.kmod.system.netlink import NetlinkControl  # noqa: PLC0415  slow to import

    return NetlinkControl()


@dataclass(frozen=True, slots=True)
class Host:
    """Everything outside the process that a session touches; tests replace it."""

    states: StateDirectory = field(default_factory=StateDirectory)
    tracefs: Tracefs = field(default_factory=Tracefs)
    modules: Modules = field(default_factory=Modules)
    connect: Callable[[], Control] = _connect
    collector: Callable[[], Path] = collector.program


@contextlib.contextmanager
def hold_collector(
    host: Host, trace: int, source: collector.Source, owner: int | None = None
) -> Iterator[collector.Held]:
    """Inside the block a collector is held that will write into `trace`, which is closed here.

    `owner` is the descriptor that it keeps open: the session's.
    """
    states = host.states
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, trace)
        stats, progress, log = (
            opened.enter_context(states.created(path))
            for path in (states.collector_stats, states.progress, states.collector_log)
        )
        keep = log if owner is None else owner
        files = collector.Descriptors(trace, stats, progress, log, keep)
        held = collector.Held(host.collector(), files, source)
    with contextlib.closing(held):
        yield held


@contextlib.contextmanager
def resume_collector(
    host: Host, state: State, instance: str | None, owner: int | None = None
) -> Iterator[collector.Held]:
    """Inside the block another collector is held that will continue the trace."""
    source = collector.Source(
        host.tracefs.mount(), instance, cwd="", zstd=state.is_compressed, resumes=True
    )
    with hold_collector(host, state.output.reopen(state.trace), source, owner) as held:
        yield held


def counts_until_now(host: Host, state: State) -> dict[str, Any]:
    """Return what has reached the trace, by the last counts of all its collectors."""
    counts = collector.read_counts(host.states.progress)
    records = counts.get("written_records", counts.get("records", 0))
    return ending.joined(state.before, {**counts, "records": records})
