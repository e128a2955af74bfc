# SPDX-License-Identifier: Apache-2.0
"""Records and references -> the JSON values of etrace_parser, and the bytes of its output."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from typing import Any

from reference.descriptors import Held
from reference.executions import Execution
from reference.files import BOTH, Change, Record
from reference.reader import Event

EXISTS = 0x40

Entry = dict[str, Any]


def file_value(record: Record, stats: dict[bytes, tuple[int, int]]) -> Entry:
    """Return a record of `o`; `stats` remembers what was asked of the file system."""
    for name in (record.original, record.resolved):
        if name not in stats:
            stats[name] = file_state(name)
    is_gone = not stats[record.original][0]
    type_bits, size = stats[record.resolved if is_gone else record.original]
    value: Entry = {"p": text(record.resolved)}
    if record.original != record.resolved:
        value["o"] = text(record.original)
    times: Entry = {"b": record.begin_ns, "e": record.end_ns}
    if record.until_ns > max(record.begin_ns, record.end_ns):
        times["l"] = record.until_ns
    if record.changes:
        times["t"] = [change_value(change) for change in record.changes]
    if record.uses:
        times["u"] = [{"b": u.begin_ns, "e": u.end_ns, "m": u.access} for u in record.uses]
    return value | times | {"m": type_bits | record.access, "s": size}


def add_states(records: Sequence[Entry], stats: dict[bytes, tuple[int, int]]) -> None:
    """Give the first record of each path that no record calls by its own name the path's state."""
    named = {record["p"] for record in records if "o" not in record}
    for record in records:
        mode, size = stats[os.fsencode(record["p"])]
        if mode and record["p"] not in named:
            named.add(record["p"])
            record |= {"f": mode, "n": size}


def change_value(change: Change) -> Entry:
    """Return an element of `t`."""
    own: Entry = {"k": change.kind, "t": change.time_ns}
    return own if change.name is None else own | {"n": text(change.name)}


def file_state(path: bytes) -> tuple[int, int]:
    """Return the `e` and `mmmm` bits and the size of a file as it is now."""
    if not path.startswith(b"/"):  # a pipe
        return 0, 0
    try:
        state = os.lstat(path)
    except (OSError, ValueError):  # ValueError: a null byte
        return 0, 0
    return EXISTS | stat.S_IFMT(state.st_mode) >> 10, state.st_size


def inherited_value(descriptor: int, held: Held) -> Entry:
    """Return a record of `h`."""
    strings, flags = held.opened.strings, held.opened.numbers["flags"]
    return {"d": descriptor, "p": text(strings["FN"]), "m": min(flags & 3, BOTH)}


def execution_value(execution: Execution) -> Entry:
    """Return a reference to an execution."""
    return {"p": execution[0], "x": execution[1]}


def written_value(event: Event) -> Entry:
    """Return one piece of what an execution wrote."""
    cut = {"c": event.numbers["cut"]} if event.numbers["cut"] else {}
    return {"d": event.numbers["fd"], **cut, "t": text(event.strings["OU"])}


def text(raw: bytes) -> str:
    """Return bytes as JSON text: UTF-8, other bytes as lone surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def json_bytes(value: Any) -> bytes:
    """Return one value in the very bytes of the output file."""
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    escaped = (f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in shown)
    return "".join(escaped).encode()


def entries_bytes(entries: list[Entry]) -> bytes:
    """Return the whole output file: one entry a line."""
    return (
        b"[\n"
        + b",\n".join(json_bytes(entry) for entry in entries)
        + b"\n"[: len(entries)]
        + b"]\n"
    )
