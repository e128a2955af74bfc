# SPDX-License-Identifier: Apache-2.0
"""The tables `compilations*` -> compile_commands.json, for clangd, clang-tidy and editors.

Format: "JSON Compilation Database Format Specification" of the Clang documentation. One entry for
each compiled file. The arguments are those of the traced command; of a stage that a driver started
they are the driver's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from libetrace.image import Image

from etrace.errors import EtraceError

NAME = "compile_commands.json"
Entry = dict[str, Any]


def entries(image: Image, rows: Iterable[int] | None = None) -> list[Entry]:
    """Return the entries of compilations, all or by row, in their order; bytes by surrogateescape.

    EtraceError when the database has no compilations yet.
    """
    table = image.tables.get("compilations")
    if table is None:
        raise EtraceError(f"{image.path}: compilations were not looked for", "run: cas pp")
    chosen = range(table.n_rows) if rows is None else rows
    return [entry for row in chosen for entry in _entries_of(image, row)]


def write(image: Image, stream: BinaryIO, rows: Iterable[int] | None = None) -> int:
    """Write the entries as JSON, in ASCII so that every byte survives; returns how many."""
    found = entries(image, rows)
    stream.write(json.dumps(found, indent=2).encode() + b"\n")
    return len(found)


def _entries_of(image: Image, row: int) -> Iterator[Entry]:
    table, executions = image["compilations"], image["executions"]
    execution = table["execution"][row]
    if table["is_child"][row]:
        execution = executions["parent"][execution]
    common: Entry = {
        "directory": _show(image.string(executions["cwd"][execution])),
        "arguments": [
            _show(image.string(image["arguments"]["string"][argument]))
            for argument in executions.span("argv.start", execution)
        ],
    }
    files = [
        image.string(image["compilation_files"]["string"][each])
        for each in table.span("files.start", row)
    ]
    objects = [
        image.path_string(image["compilation_objects"]["path"][each])
        for each in table.span("objects.start", row)
    ]
    for file in files:
        entry = {**common, "file": _show(file)}
        output = _output_of(file, len(files), objects)
        yield entry if output is None else {**entry, "output": _show(output)}


def _output_of(file: bytes, n_files: int, objects: list[bytes]) -> bytes | None:
    """Return what a file was compiled into: of several objects the one that has its name."""
    if n_files == 1 or len(objects) <= 1:
        return objects[0] if objects else None
    return next((each for each in objects if _stem(each) == _stem(file)), None)


def _stem(path: bytes) -> bytes:
    name = path.rpartition(b"/")[2]
    return name.rpartition(b".")[0] or name


def _show(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
