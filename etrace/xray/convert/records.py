# SPDX-License-Identifier: Apache-2.0
"""Records one by one: YAML as llvm-xray's `convert -f yaml`, JSON, JSON lines and CSV.

Filters of functions, threads and time hold for each record. A minimum duration holds for the enter
and the exit of a call; events are not calls and stay.
"""

from __future__ import annotations

import io
import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from libetrace.xray.expander import mark_short_calls

from etrace.texts import CsvWriter
from etrace.xray.log import KINDS, Event, Log
from etrace.xray.session import Session

if TYPE_CHECKING:
    from etrace.xray.convert import Options

FIRST_EVENT = 4
TYPED = 5
#: words of llvm-xray's YAML
LLVM_KINDS = (
    "function-enter", "function-exit", "function-tail-exit", "function-enter-arg", "custom-event",
    "typed-event",
)  # fmt: skip
#: words that YAML 1.1 does not read as text
YAML_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
PIECE = 2048


@dataclass(frozen=True, slots=True)
class Row:
    """One record with its details."""

    tsc: int
    kind: int
    function: int
    cpu: int
    thread: int
    process: int
    arguments: tuple[int, ...] = ()
    data: bytes = b""
    type: int = 0


def _by_record(pairs: Any) -> dict[int, Any]:
    found: dict[int, list[int]] = {}
    for record, value in pairs:
        found.setdefault(record, []).append(value)
    return found


@dataclass(frozen=True, slots=True)
class _Details:
    """Details of single records of a log; made once for all of its threads."""

    arguments: Mapping[int, Sequence[int]]
    events: Mapping[int, Event]


def _details(log: Log) -> _Details:
    return _Details(_by_record(log.arguments), {event.record: event for event in log.events})


def _thread_rows(log: Log, number: int, details: _Details, shortest: int) -> Iterator[Row]:
    """Yield the records of one thread, without those of calls of fewer ticks than `shortest`."""
    thread = log.threads[number]
    arguments, events = details.arguments, details.events
    tsc, function, kind = (log.records[name] for name in ("tsc", "function", "kind"))
    first, end = thread.first_record, thread.first_record + thread.n_records
    runs = islice(log.cpus, bisect_left(log.cpus, (first, 0)), None)
    short = bytes(thread.n_records)
    if shortest:
        short = bytes(
            mark_short_calls(tsc[first:end], function[first:end], kind[first:end], shortest)
        )
    following, cpu = next(runs, None), 0
    for i in range(first, end):
        while following is not None and following[0] <= i:
            cpu, following = following[1], next(runs, None)
        if short[i - first]:
            continue
        event = events.get(i) if kind[i] >= FIRST_EVENT else None
        yield Row(
            tsc[i], kind[i], function[i], cpu, thread.thread, thread.process,
            tuple(arguments.get(i, ())), event.data if event else b"", event.type if event else 0,
        )  # fmt: skip


def _wanted(session: Session, rows: Iterator[Row]) -> Iterator[Row]:
    options = session.options
    functions, threads = options["functions"], options["threads"]
    first, last = options["from_tsc"], options["until_tsc"]
    for row in rows:
        if threads is not None and row.thread not in threads:
            return  # all rows of an iterator are of one thread
        if not first <= row.tsc < last:
            continue
        if functions is None or (row.kind < FIRST_EVENT and row.function in functions):
            yield row


def rows(session: Session, *, sort_by_time: bool = True) -> Iterator[Row]:
    """Yield the records of a session's logs that its filters select."""
    shortest = session.options["shortest"]
    each = [
        _wanted(session, _thread_rows(log, number, details, shortest))
        for log, details in zip(session.logs, map(_details, session.logs), strict=True)
        for number in range(len(log.threads))
    ]
    if sort_by_time:
        yield from merge(*each, key=lambda row: row.tsc)
        return
    for one in each:
        yield from one


# ---- YAML ----


def yaml_string(text: str) -> str:
    """Return a YAML scalar; single quotes where llvm-xray has them."""
    if text.isidentifier() and text.lower() not in YAML_WORDS:
        return text
    if all(c.isprintable() for c in text):
        return "'" + text.replace("'", "''") + "'"
    escapes = {"\\": "\\\\", '"': '\\"'}
    shown = (escapes.get(c, c) if c.isprintable() else f"\\U{ord(c):08X}" for c in text)
    return f'"{"".join(shown)}"'


def _yaml(session: Session, rows: Iterator[Row]) -> Iterator[str]:
    raw = session.logs[0].raw
    yield (
        "---\nheader:\n"
        f"  version:         {raw.version}\n  type:            {0 if raw.is_basic else 1}\n"
        f"  constant-tsc:    {str(bool(raw.flags & 1)).lower()}\n"
        f"  nonstop-tsc:     {str(bool(raw.flags & 2)).lower()}\n"
        f"  cycle-frequency: {session.clock.hz}\nrecords:\n"
    )
    name = session.names.name
    for row in rows:
        arguments = f"args: [ {', '.join(map(str, row.arguments))} ], " if row.arguments else ""
        data = row.data.decode("utf-8", "backslashreplace")
        yield (
            f"  - {{ type: {row.type}, func-id: {row.function}, "
            f"function: {yaml_string(name(row.function)) if row.function else chr(39) * 2}, "
            f"{arguments}cpu: {row.cpu}, thread: {row.thread}, process: {row.process}, "
            f"kind: {LLVM_KINDS[row.kind]}, tsc: {row.tsc}, data: {_yaml_data(data)} }}\n"
        )
    yield "...\n"


def _yaml_data(text: str) -> str:
    return yaml_string(text) if text else "''"


# ---- JSON and CSV ----


def _object(session: Session, row: Row, first_tsc: int) -> dict[str, Any]:
    out: dict[str, Any] = {
        "time_ns": session.clock.ns(row.tsc - first_tsc),
        "tsc": row.tsc,
        "kind": KINDS[row.kind],
        "process": row.process,
        "thread": row.thread,
        "cpu": row.cpu,
    }
    if row.kind < FIRST_EVENT:
        out |= {"function_id": row.function, "function": session.names.name(row.function)}
    if row.arguments:
        out["arguments"] = list(row.arguments)
    if row.kind == TYPED:
        out["type"] = row.type
    if row.kind >= FIRST_EVENT:
        out["data"] = row.data.decode("utf-8", "backslashreplace")  # no half of a pair: not JSON
    return out


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _json_lines(session: Session, rows: Iterator[Row]) -> Iterator[str]:
    first = session.first_tsc
    for row in rows:
        yield _dump(_object(session, row, first)) + "\n"


def _json(session: Session, rows: Iterator[Row]) -> Iterator[str]:
    raw = session.logs[0].raw
    head = {"version": raw.version, "type": "basic" if raw.is_basic else "fdr"}
    head |= {"frequency_hz": session.clock.hz, "first_tsc": session.first_tsc}
    yield f'{{"header": {_dump(head)},\n"records": ['
    separator = "\n"
    for line in _json_lines(session, rows):
        yield separator + line[:-1]
        separator = ",\n"
    yield "\n]}\n"


CSV_COLUMNS = (
    "time_ns", "tsc", "kind", "process", "thread", "cpu", "function_id", "function", "arguments",
    "type", "data",
)  # fmt: skip


def _shown(data: bytes) -> str:
    """Return a payload as text without control characters, which break spreadsheets."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _csv(session: Session, rows: Iterator[Row]) -> Iterator[str]:
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.write(CSV_COLUMNS)
    first = session.first_tsc
    for row in rows:
        found = _object(session, row, first)
        if row.arguments:
            found["arguments"] = " ".join(map(str, row.arguments))
        if row.kind >= FIRST_EVENT:
            found["data"] = _shown(row.data)
        writer.write(found.get(name, "") for name in CSV_COLUMNS)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


WRITERS = {"yaml": _yaml, "json": _json, "jsonl": _json_lines, "csv": _csv}


def write(session: Session, stream: IO[bytes], options: Options) -> None:
    """Write YAML, JSON, JSON lines or CSV."""
    found = rows(session, sort_by_time=options.sort_by_time)
    total = sum(log.n_records for log in session.logs)
    pieces: list[str] = []
    for n_done, text in enumerate(WRITERS[options.format](session, found), start=1):
        pieces.append(text)
        if len(pieces) == PIECE:
            stream.write("".join(pieces).encode())
            pieces.clear()
            options.progress(n_done, max(total, n_done))
    stream.write("".join(pieces).encode())
