# SPDX-License-Identifier: Apache-2.0
"""Chrome's trace event format, which Perfetto, chrome://tracing and speedscope read.

Calls are complete events ("X", microseconds since the log began with three decimals), logged
arguments are their `args`, custom and typed events are instants of their thread. Format: "Trace
Event Format", Google, 2016; the tests read it back with the engine of Chrome's viewer.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from etrace.xray.log import ENDINGS, Log
from etrace.xray.session import Session

if TYPE_CHECKING:
    from etrace.xray.convert import Options

CUSTOM = 4
PIECE = 1024


def _us(ns: int) -> float:
    return ns / 1000


def _metadata(log: Log, log_name: str) -> Iterator[dict[str, Any]]:
    for process in dict.fromkeys(thread.process for thread in log.threads):
        yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0,
               "args": {"name": f"{log_name} ({process})"}}  # fmt: skip
    for thread in log.threads:
        yield {"ph": "M", "name": "thread_name", "pid": thread.process, "tid": thread.thread,
               "args": {"name": f"thread {thread.thread}"}}  # fmt: skip


def _thread_numbers(log: Log) -> Callable[[int], int]:
    """Return a function that finds the thread number of a record."""
    order = sorted((t.first_record, i) for i, t in enumerate(log.threads) if t.n_records)
    firsts = [first for first, _ in order]
    return lambda record: order[bisect_right(firsts, record) - 1][1]


def _arguments(log: Log) -> dict[tuple[int, int, int], list[int]]:
    """Return logged arguments by (thread number, time, function) of their call."""
    found: dict[tuple[int, int, int], list[int]] = {}
    number_of = _thread_numbers(log)
    for record, value in log.arguments:
        key = (number_of(record), log.records["tsc"][record], log.records["function"][record])
        found.setdefault(key, []).append(value)
    return found


def _calls(session: Session, log: Log) -> Iterator[dict[str, Any]]:
    calls = log.calls(**session.options)
    clock, first, name = session.clock, session.first_tsc, session.names.name
    arguments = _arguments(log)
    columns = (calls[c] for c in ("start", "ticks", "function", "thread", "ending"))
    for start, ticks, function, number, ending in zip(*columns, strict=True):
        thread = log.threads[number]
        event: dict[str, Any] = {
            "ph": "X", "name": name(function), "cat": "xray", "pid": thread.process,
            "tid": thread.thread, "ts": _us(clock.ns(start - first)), "dur": _us(clock.ns(ticks)),
        }  # fmt: skip
        details: dict[str, Any] = {"id": function}
        if values := arguments.get((number, start, function)):
            details["arguments"] = [str(value) for value in values]  # 64 bits: no double holds them
        if ending > 1:
            details["ended_by"] = ENDINGS[ending]
        yield event | {"args": details}


def _instants(session: Session, log: Log) -> Iterator[dict[str, Any]]:
    wanted = session.options["threads"]
    number_of = _thread_numbers(log)
    for event in log.events:
        thread = log.threads[number_of(event.record)]
        tsc = log.records["tsc"][event.record]
        inside = session.options["from_tsc"] <= tsc < session.options["until_tsc"]
        if not inside or (wanted is not None and thread.thread not in wanted):
            continue
        kind = "custom event" if log.records["kind"][event.record] == CUSTOM else "typed event"
        yield {
            "ph": "i", "s": "t", "name": kind, "cat": "xray", "pid": thread.process,
            "tid": thread.thread, "ts": _us(session.clock.ns(tsc - session.first_tsc)),
            "args": {"data": event.data.decode(errors="backslashreplace"), "type": event.type},
        }  # fmt: skip


def events(session: Session) -> Iterator[dict[str, Any]]:
    """Yield all trace events of a session's logs."""
    for log in session.logs:
        yield from _metadata(log, log.name)
        yield from _calls(session, log)
        yield from _instants(session, log)


def write(session: Session, stream: IO[bytes], options: Options) -> None:
    """Write one JSON object, an event a line."""
    other = {"frequency_hz": session.clock.hz, "first_tsc": str(session.first_tsc)}
    stream.write(b'{"displayTimeUnit":"ns","otherData":' + json.dumps(other).encode())
    stream.write(b',"traceEvents":[')
    separator = "\n"
    pieces: list[str] = []
    total = sum(log.n_records for log in session.logs) // 2  # an enter and an exit each
    for n_done, event in enumerate(events(session), start=1):
        pieces += (separator, json.dumps(event, separators=(",", ":")))
        separator = ",\n"
        if len(pieces) >= 2 * PIECE:
            stream.write("".join(pieces).encode())
            pieces.clear()
            options.progress(n_done, max(total, n_done))
    stream.write("".join(pieces).encode() + b"\n]}\n")
