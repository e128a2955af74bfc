# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json` -> the columns of a database image.

Reads what `etrace_parser` writes and what the ancestor wrote (docs/nfsdb-json.md, seed 001): lists
that are missing there (`i`, `c`, `o`, `u`) count as empty. Strings become bytes again by Python's
surrogateescape convention.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from libetrace.image import DTYPES, NewColumn, NewTable

from etrace.errors import EtraceError
from etrace.spec.database import NONE, TABLES, Table

Entry = Mapping[str, Any]
TYPE_BITS = 0x7C  # of a mode: whether the file exists, and its type
MOUNT_KINDS = ("mount", "umount")


class Strings:
    """Strings by number in order of appearance; numbers become rows of `strings` at the end."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """Return the number of a string."""
        return self._numbers.setdefault(text, len(self._numbers))

    def optional(self, text: str | None) -> int:
        """Return the number of a string, NONE without one."""
        return NONE if text is None else self(text)

    def sorted(self) -> tuple[list[bytes], array[int]]:
        """Return the strings in order of bytes, and the row of each number."""
        raw = [os.fsencode(text) for text in self._numbers]
        order = sorted(range(len(raw)), key=raw.__getitem__)
        rows = array("i", bytes(4 * len(raw)))
        for row, number in enumerate(order):
            rows[number] = row
        return [raw[number] for number in order], rows


class Columns:
    """The columns of all tables, empty, to be appended to."""

    def __init__(self) -> None:
        self._columns = {
            table.name: {c.name: array(DTYPES[c.dtype][0]) for c in table.columns}
            for table in TABLES
        }
        for columns in self._columns.values():
            for name, column in columns.items():
                if name.endswith(".start"):
                    column.append(0)

    def __getitem__(self, table: str) -> dict[str, array[int]]:
        return self._columns[table]

    def tables(self) -> list[NewTable]:
        """Return them in the order of the schema."""
        return [self._table(table) for table in TABLES]

    def _table(self, table: Table) -> NewTable:
        columns = self._columns[table.name]
        first = table.columns[0].name
        n_rows = len(columns[first]) - (first == "start")
        return NewTable(
            table.name,
            n_rows,
            [NewColumn(c.name, c.dtype, columns[c.name], c.unit, c.meaning) for c in table.columns],
        )


def read_entries(path: Path) -> list[Entry]:
    """Return the entries of a JSON database by (upid, index); EtraceError says what is wrong."""
    hint = "make it again: etrace_parser .nfsdb .nfsdb.json"
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", hint) from error
    except ValueError as error:
        raise EtraceError(f"{path}: {error}", hint) from error
    if not isinstance(raw, list):
        raise EtraceError(f"{path}: not an array of executions", hint)
    for number, entry in enumerate(raw):
        if not isinstance(entry, dict):
            raise EtraceError(f"{path}: entry {number} is not an object", hint)
        for key in ("p", "x"):
            if not isinstance(entry.get(key), int):
                raise EtraceError(f"{path}: entry {number} has no number {key!r}", hint)
    return sorted(raw, key=lambda entry: (entry["p"], entry["x"]))


class Builder:
    """Entries -> columns. `build()` is called once."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._rows = {(entry["p"], entry["x"]): row for row, entry in enumerate(entries)}
        self._strings = Strings()
        self._columns = Columns()
        self._stat: dict[int, tuple[int, int]] = {}  # number of a path: type bits, size

    def add_environment(self, variables: Mapping[str, Iterable[int]]) -> None:
        """Add the content of `.nfsdb.env.json`."""
        pairs = sorted(
            (upid, os.fsencode(text), text) for text, upids in variables.items() for upid in upids
        )
        table = self._columns["environment"]
        table["upid"].extend(upid for upid, _, _ in pairs)
        table["string"].extend(self._strings(text) for _, _, text in pairs)

    def add_mounts(self, mounts: Iterable[Entry]) -> None:
        """Add the content of `.nfsdb.mounts.json`."""
        table = self._columns["mounts"]
        for mount in mounts:
            table["execution"].append(self._rows.get((mount["p"], mount["x"]), NONE))
            table["time_ns"].append(mount["t"])
            table["kind"].append(MOUNT_KINDS.index(mount["k"]))
            for name in ("source", "target", "type"):
                table[name].append(self._strings.optional(mount.get(name)))
            table["flags"].append(mount.get("flags", 0))
            table["ok"].append(mount.get("ok", True))

    def build(self) -> list[NewTable]:
        """Return all tables of the image."""
        for entry in self._entries:
            self._add_execution(entry)
        self._finish()
        return self._columns.tables()

    # ---- one execution ----

    def _add_execution(self, entry: Entry) -> None:
        table = self._columns["executions"]
        parent = entry.get("r", {"p": -1, "x": 0})
        binary = entry.get("b", "")
        table["upid"].append(entry["p"])
        table["index"].append(entry["x"])
        table["start_ns"].append(entry.get("s", 0))
        table["elapsed_ns"].append(entry.get("e", 0))
        table["parent"].append(self._rows.get((parent["p"], parent["x"]), NONE))
        table["binary"].append(self._path(binary) if binary else NONE)
        table["cwd"].append(self._strings(entry.get("w", "")))
        table["status"].append(entry.get("!", NONE))
        self._columns["arguments"]["string"].extend(map(self._strings, entry.get("v", ())))
        self._add_children(entry.get("c", ()))
        self._add_readers(entry.get("i", ()))
        self._add_cpus(entry.get("u", ()))
        row = len(table["upid"]) - 1
        self._add_opens(row, entry.get("o", ()), tells_last="h" in entry)
        self._add_inherited(row, entry.get("h", ()))
        for name, of in (
            ("argv", "arguments"),
            ("opens", "opens"),
            ("children", "children"),
            ("inherited", "inherited"),
            ("readers", "pipe_readers"),
            ("cpus", "cpus"),
        ):
            table[f"{name}.start"].append(len(next(iter(self._columns[of].values()))))

    def _add_children(self, children: Iterable[Entry]) -> None:
        table = self._columns["children"]
        for child in children:
            table["upid"].append(child["p"])
            table["flags"].append(child.get("f", 0) & 0xFFFFFFFF)
            table["execution"].append(self._rows.get((child["p"], 0), NONE))

    def _add_readers(self, readers: Iterable[Entry]) -> None:
        rows = (self._rows.get((reader["p"], reader["x"])) for reader in readers)
        self._columns["pipe_readers"]["execution"].extend(row for row in rows if row is not None)

    def _add_cpus(self, cpus: Iterable[Entry]) -> None:
        table = self._columns["cpus"]
        for cpu in cpus:
            table["cpu"].append(cpu["c"])
            table["time_ns"].append(cpu["t"])

    def _path(self, text: str) -> int:
        number = self._strings(text)
        self._stat.setdefault(number, (0, 0))
        return number

    def _add_inherited(self, row: int, files: Iterable[Entry]) -> None:
        table = self._columns["inherited"]
        for file in files:
            table["path"].append(self._path(file["p"]))
            table["execution"].append(row)
            table["descriptor"].append(file["d"])
            table["mode"].append(file["m"])

    def _add_opens(self, row: int, opens: Iterable[Entry], *, tells_last: bool) -> None:
        table = self._columns["opens"]
        for file in opens:
            path = self._path(file["p"])
            original = self._strings(file["o"]) if "o" in file else path
            mode, size = file.get("m", 0), file.get("s", 0)
            if original == path and mode & TYPE_BITS:
                self._stat[path] = (mode & TYPE_BITS, size)
            table["path"].append(path)
            table["original"].append(original)
            table["open_ns"].append(file.get("b", 0))
            table["close_ns"].append(file.get("e", 0))
            table["mode"].append(mode & 0xFF)
            table["size"].append(size)
            table["execution"].append(row)
            last = file.get("l", max(file.get("b", 0), file.get("e", 0)))
            table["until_ns"].append(last if tells_last else NONE)

    # ---- numbers to rows ----

    def _finish(self) -> None:
        strings, row_of = self._strings.sorted()
        self._write_strings(strings)
        for table, column in (
            ("executions", "cwd"),
            ("arguments", "string"),
            ("opens", "original"),
            ("environment", "string"),
            ("mounts", "source"),
            ("mounts", "target"),
            ("mounts", "type"),
        ):
            self._renumber(table, column, row_of)
        paths = sorted(self._stat, key=row_of.__getitem__)
        path_row = {number: row for row, number in enumerate(paths)}
        self._renumber("executions", "binary", path_row)
        self._renumber("opens", "path", path_row)
        self._renumber("inherited", "path", path_row)
        self._write_paths(paths, row_of)

    def _write_strings(self, strings: list[bytes]) -> None:
        table = self._columns["strings"]
        table["start"].extend(accumulate(map(len, strings), initial=0))
        table["bytes"].frombytes(b"".join(strings))

    def _renumber(self, table: str, column: str, rows: Any) -> None:
        old = self._columns[table][column]
        self._columns[table][column] = array(
            old.typecode, (number if number == NONE else rows[number] for number in old)
        )

    def _write_paths(self, paths: list[int], row_of: array[int]) -> None:
        table, opened = self._columns["paths"], self._columns["opens"]["path"]
        table["string"].extend(row_of[number] for number in paths)
        table["mode"].extend(self._stat[number][0] for number in paths)
        table["size"].extend(self._stat[number][1] for number in paths)
        counts = [0] * len(paths)
        for path in opened:
            counts[path] += 1
        table["opens.start"].extend(accumulate(counts))
        by_path = sorted(range(len(opened)), key=opened.__getitem__)
        self._columns["path_opens"]["open"].extend(by_path)
