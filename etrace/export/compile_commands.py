# SPDX-License-Identifier: Apache-2.0
"""The tables `compilations*` -> compile_commands.json, for clangd, clang-tidy and editors.

Format: "JSON Compilation Database Format Specification" of the Clang documentation. One entry for
each compiled file; identical entries appear once. The arguments are those of the traced command; a
stage that a driver started has the driver's. Launchers are left away: `ccache gcc -c a.c` is `gcc
-c a.c`, whether ccache then ran gcc, with other arguments, or had the object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.invocation import without_launchers
from etrace.errors import EtraceError
from etrace.query.compiled import sources
from etrace.query.given.source_choice import SourceChoice
from etrace.spec.database import NONE

NAME = "compile_commands.json"
Entry = dict[str, Any]


def entries(
    image: Image, rows: Iterable[int] | None = None, choice: SourceChoice | None = None
) -> list[Entry]:
    """Return the entries of compilations, all or by row, in their order, identical ones once.

    With `choice` only its sources; bytes by surrogateescape. EtraceError when the
    database has no compilations yet.
    """
    table = image.tables.get("compilations")
    if table is None:
        raise EtraceError(f"{image.path} has no compilations yet", "run: cas pp")
    chosen = range(table.n_rows) if rows is None else rows
    commands, choice = _Commands(image), choice or SourceChoice()
    return _unique(entry for row in chosen for entry in _entries_of(image, row, commands, choice))


def write(
    image: Image,
    stream: BinaryIO,
    rows: Iterable[int] | None = None,
    choice: SourceChoice | None = None,
) -> int:
    """Write the entries as JSON, in ASCII so that every byte survives; returns how many."""
    found = entries(image, rows, choice)
    stream.write(json.dumps(found, indent=2).encode() + b"\n")
    return len(found)


def _unique(found: Iterable[Entry]) -> list[Entry]:
    first: dict[tuple[Any, ...], Entry] = {}
    for entry in found:
        key = entry["directory"], tuple(entry["arguments"]), entry["file"], entry.get("output")
        first.setdefault(key, entry)
    return list(first.values())


class _Commands:
    """The commands of one image, as a user would write them."""

    def __init__(self, image: Image) -> None:
        self._image, self._tools = image, tools.load()
        self._executions = image["executions"]

    def of(self, row: int) -> tuple[int, Sequence[bytes]]:
        """Return the execution and the arguments that stand for a row of `compilations`."""
        table = self._image["compilations"]
        execution = table["execution"][row]
        if table["is_child"][row]:
            execution = self._executions["parent"][execution]
        seen = {execution}  # a damaged database may contain a cycle
        while (outer := self._outer(execution)) not in seen and self._launched(outer):
            seen.add(outer)
            execution = outer
        return execution, self._launched(execution) or self._told(execution)

    def _outer(self, row: int) -> int:
        """Return the execution that became this one, or else forked it."""
        if self._executions["index"][row] > 1:
            return row - 1
        return int(self._executions["parent"][row])

    def _told(self, row: int) -> Sequence[bytes]:
        arguments = self._image["arguments"]["string"]
        span = self._executions.span("argv.start", row)
        return [self._image.string(arguments[i]) for i in span]

    def _launched(self, row: int) -> Sequence[bytes]:
        """Return the command that a launcher runs; empty for other programs."""
        if row == NONE or self._executions["binary"][row] == NONE:
            return ()
        argv = self._told(row)
        binary = self._image.path_string(self._executions["binary"][row])
        tool = self._tools.identify(binary, argv[0] if argv else b"")
        if tool is None or tool.kind != "launcher":
            return ()
        return without_launchers(self._tools, tool, argv)


def _entries_of(
    image: Image, row: int, commands: _Commands, choice: SourceChoice
) -> Iterator[Entry]:
    files = sources(image, row)
    kept = [file for file in files if choice.takes(file)]
    if not kept:
        return
    execution, argv = commands.of(row)
    common: Entry = {
        "directory": _show(image.string(image["executions"]["cwd"][execution])),
        "arguments": [_show(argument) for argument in argv],
    }
    objects = [
        image.path_string(image["compilation_objects"]["path"][each])
        for each in image["compilations"].span("objects.start", row)
    ]
    for file in kept:
        entry = {**common, "file": _show(file)}
        output = _output_of(file, len(files), objects)
        yield entry if output is None else {**entry, "output": _show(output)}


def _output_of(file: bytes, n_files: int, objects: list[bytes]) -> bytes | None:
    """Return the object of a source; of several objects the one with its name."""
    if n_files == 1 or len(objects) <= 1:
        return objects[0] if objects else None
    return next((each for each in objects if _stem(each) == _stem(file)), None)


def _stem(path: bytes) -> bytes:
    name = path.rpartition(b"/")[2]
    return name.rpartition(b".")[0] or name


def _show(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
