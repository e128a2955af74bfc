# SPDX-License-Identifier: Apache-2.0
"""Reads the records that a collector left in the kernel's buffers when it died.

Another collector reads that to the end of the trace, behind the last event (the last frame of a
compressed one) that is whole. What the dead one had read but not written (it holds events back to
bring them into order) is gone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from etrace.capture.kmod.sessions import collector
from etrace.capture.kmod.sessions.host import Host
from etrace.capture.kmod.sessions.state import State
from etrace.errors import CaptureError
from etrace.figures import count

#: counts that are added for both collectors; those that only one has are left out
SUMS = ("processes", "executions", "opens", "bytes", "records", "lost")
UNKNOWN = ("events", "lines", "duration_ns", "ended", "warnings")


def rescue(host: Host, state: State) -> tuple[dict[str, Any], str]:
    """Read the remaining records; return the counts of both collectors and a message."""
    before = until_now(host, state)
    is_there = host.tracefs.instance(state.instance).exists
    try:
        after = _collect(host, state, state.instance if is_there else None)
    except CaptureError as error:
        return (
            before,
            f"the collector died, and its remaining records were not read: {error.message}",
        )
    if not is_there:
        return before, "the collector died"
    counts = joined(before, after)
    remark = (
        f"the collector died; recovered {count(after.get('records', 0), 'record')} that it had not "
        "read; those that it had read but not written are missing"
    )
    return counts, remark


def until_now(host: Host, state: State) -> dict[str, Any]:
    """Return what has reached the trace, by the last counts of all its collectors."""
    counts = collector.read_counts(host.states.progress)
    records = counts.get("written_records", counts.get("records", 0))
    return joined(state.before, {**counts, "records": records})


def joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a collector and of those before it."""
    if not before:
        return after
    sums = {key: int(before.get(key, 0)) + int(after.get(key, 0)) for key in SUMS}
    collectors = int(before.get("collectors", 1)) + 1
    rest = {key: value for key, value in after.items() if key not in UNKNOWN}
    return {**rest, **sums, "collectors": collectors}


def _collect(host: Host, state: State, instance: str | None) -> dict[str, Any]:
    with resumed(host, state, instance) as held:
        held.release(host.states.collector_log, lambda: None)
        collector.stop(held.process, host.states.progress, lambda _text: None, lambda: None)
    return collector.read_counts(host.states.collector_stats)


@contextlib.contextmanager
def resumed(
    host: Host, state: State, instance: str | None, owner: int | None = None
) -> Iterator[collector.Held]:
    """Inside the block another collector is held that will continue the trace.

    `owner` is the descriptor that it keeps open: the session's.
    """
    states = host.states
    with contextlib.ExitStack() as opened:
        trace = state.output.reopen(state.trace)
        opened.callback(os.close, trace)
        stats, progress, log = (
            opened.enter_context(states.created(path))
            for path in (states.collector_stats, states.progress, states.collector_log)
        )
        source = collector.Source(
            host.tracefs.mount(), instance, cwd="", zstd=state.is_compressed, resumes=True
        )
        keep = log if owner is None else owner
        descriptors = collector.Descriptors(trace, stats, progress, log, keep)
        held = collector.Held(host.collector(), descriptors, source)
    with contextlib.closing(held):
        yield held
