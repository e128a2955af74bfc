# SPDX-License-Identifier: Apache-2.0
"""Reads the records that a collector left in the kernel's buffers when it died.

Another collector reads that to the end of the trace, behind the last event (the last frame of a
compressed one) that is whole. What the dead one had read but not written (it holds events back to
bring them into order) is gone.
"""

from __future__ import annotations

import contextlib
import os
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
    before = _written(collector.read_counts(host.states.progress))
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
    sums = {key: int(before.get(key, 0)) + int(after.get(key, 0)) for key in SUMS}
    counts = {**after, **sums}
    for key in UNKNOWN:
        counts.pop(key, None)
    remark = (
        f"the collector died; recovered {count(after.get('records', 0), 'record')} that it had not "
        "read; those that it had read but not written are missing"
    )
    return counts, remark


def _written(counts: dict[str, Any]) -> dict[str, Any]:
    """Count as read only the records that have reached the file."""
    records = counts.get("written_records", counts.get("records", 0))
    return {**counts, "records": records}


def _collect(host: Host, state: State, instance: str | None) -> dict[str, Any]:
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
        descriptors = collector.Descriptors(trace, stats, progress, log, keep=log)
        held = collector.Held(host.collector(), descriptors, source)
    with contextlib.closing(held):
        held.release(states.collector_log, lambda: None)
        collector.stop(held.process, states.progress, lambda _text: None, lambda: None)
    return collector.read_counts(states.collector_stats)
