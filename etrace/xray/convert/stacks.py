# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls as text for flamegraph.pl and inferno, and in speedscope's own format.

Folded lines have self time in nanoseconds, or calls. speedscope has one evented profile a thread,
in nanoseconds: https://www.speedscope.app/file-format-schema.json. A profile's events must nest and
not go back in time, so a call that begins before the previous one ends is moved to that end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from etrace.xray.log import Log
from etrace.xray.session import Session
from etrace.xray.stacks import stacks

if TYPE_CHECKING:
    from etrace.xray.convert import Options


def write_folded(session: Session, stream: IO[bytes], options: Options) -> None:
    """Write one line a path."""
    found = stacks(session, deduce=options.deduce)
    for line in found.folded("count" if options.weight == "count" else "self"):
        names, _, value = line.rpartition(" ")
        number = int(value)
        if options.weight != "count":
            number = session.clock.ns(number)
        stream.write(f"{names} {number}\n".encode(errors="replace"))


if TYPE_CHECKING:
    from etrace.xray.convert import Options

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def _events(calls: list[tuple[int, int, int, int]]) -> Iterator[dict[str, Any]]:
    """Yield opens and closes of (start, end, depth, frame), which come as they began."""
    open_calls: list[tuple[int, int]] = []  # end, frame
    now = 0
    for start, end, depth, frame in calls:
        while len(open_calls) > depth:
            closed, number = open_calls.pop()
            now = max(now, closed)
            yield {"type": "C", "frame": number, "at": now}
        now = max(now, start)
        yield {"type": "O", "frame": frame, "at": now}
        open_calls.append((end, frame))
    while open_calls:
        closed, number = open_calls.pop()
        now = max(now, closed)
        yield {"type": "C", "frame": number, "at": now}


def _profiles(session: Session, log: Log, frames: dict[int, int]) -> Iterator[Any]:
    calls = log.calls(**session.options)
    clock, first = session.clock, session.first_tsc
    by_thread: dict[int, list[tuple[int, int, int, int]]] = {}
    stack: list[int] = []  # parents, to count the depth among the calls that are shown
    columns = (calls[c] for c in ("start", "ticks", "function", "thread", "parent"))
    for row, (start, ticks, function, thread, parent) in enumerate(zip(*columns, strict=True)):
        while stack and stack[-1] != parent:
            stack.pop()
        frame = frames.setdefault(function, len(frames))
        begin = clock.ns(start - first)
        entry = (begin, begin + clock.ns(ticks), len(stack), frame)
        by_thread.setdefault(thread, []).append(entry)
        stack.append(row)
    for number, rows in by_thread.items():
        events = list(_events(rows))
        thread_info = log.threads[number]
        yield {
            "type": "evented", "name": f"{log.name}: thread {thread_info.thread}",
            "unit": "nanoseconds", "startValue": events[0]["at"], "endValue": events[-1]["at"],
            "events": events,
        }  # fmt: skip


def write_speedscope(session: Session, stream: IO[bytes], _options: Options) -> None:
    """Write one speedscope file."""
    frames: dict[int, int] = {}
    profiles = [p for log in session.logs for p in _profiles(session, log, frames)]
    names = [{"name": session.names.name(f), "file": session.names.place(f)} for f in frames]
    document = {
        "$schema": SCHEMA, "exporter": "etrace", "shared": {"frames": names}, "profiles": profiles,
    }  # fmt: skip
    stream.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
