# SPDX-License-Identifier: Apache-2.0
"""Slices and counters as Chrome's trace event format, written as they come.

Perfetto, chrome://tracing and speedscope read it. Slices are complete events ("X", microseconds
with three decimals), lanes are threads of one process. Format: "Trace Event Format", Google, 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from etrace.timeline.counters import Counter
from etrace.timeline.slices import Slice

PROCESS = 1
PIECE = 1024


def _counter(counter: Counter) -> Iterator[dict[str, Any]]:
    key = counter.unit or "value"
    for time_ns, value in counter.points:
        yield {"ph": "C", "name": counter.name, "pid": PROCESS, "ts": time_ns / 1000,
               "args": {key: value}}  # fmt: skip


def _slice(one: Slice) -> dict[str, Any]:
    return {
        "ph": "X", "name": one.name, "cat": one.category, "pid": PROCESS, "tid": one.lane + 1,
        "ts": one.start_ns / 1000, "dur": (one.end_ns - one.start_ns) / 1000,
        "args": dict(one.details),
    }  # fmt: skip


def _events(slices: Iterable[Slice], counters: Iterable[Counter]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "build"}}
    for counter in counters:
        yield from _counter(counter)
    named: set[int] = set()
    for one in slices:
        if one.lane not in named:
            named.add(one.lane)
            yield {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": one.lane + 1,
                   "args": {"name": f"lane {one.lane + 1}"}}  # fmt: skip
        yield _slice(one)


def write(stream: IO[bytes], slices: Iterable[Slice], counters: Iterable[Counter]) -> None:
    """Write one JSON object, an event a line. OSError."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    pieces = [b'{"displayTimeUnit":"ms","traceEvents":[\n']
    separator = ""
    for event in _events(slices, counters):
        pieces.append((separator + encode(event)).encode())
        separator = ",\n"
        if len(pieces) >= PIECE:
            stream.write(b"".join(pieces))
            pieces.clear()
    stream.write(b"".join(pieces) + b"\n]}\n")
