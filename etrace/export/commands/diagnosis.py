# SPDX-License-Identifier: Apache-2.0
"""A database -> why its compile_commands.json has few entries or none.

A program that read a source and wrote an object of the same name compiled it, whatever it is
called. When no tool of etrace/compilers describes it, and no known compiler started it, its
compilations are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import basename, splitext

from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.tools import Tool
from etrace.postprocess.compilations.compiled_objects import WRITE
from etrace.query.classes.file_kinds import FileKind, by_name
from etrace.spec.database import NONE

OBJECTS = frozenset((b".o", b".obj", b".lo", b".os", b".bc", b".axf", b".rel", b".p", b".asm"))


@dataclass(slots=True)
class Diagnosis:
    """What ran, for a user who misses entries; programs are counted by path.

    `n_compilers` are executions of known compilers and launchers, `n_failed` those of them that
    failed, `unknown` programs that compiled but are not known, `others` all that are not known.
    `n_unread` is the number of commands whose response files are gone.
    """

    n_programs: int = 0
    n_compilers: int = 0
    n_failed: int = 0
    n_unread: int = 0
    unknown: Counter[bytes] = field(default_factory=Counter)
    others: Counter[bytes] = field(default_factory=Counter)


def diagnose(image: Image) -> Diagnosis:
    """Look at all executions of a database."""
    found, executions, compiling = Diagnosis(), image["executions"], _Compiling(image)
    identified: dict[int, Tool | None] = {}
    for row in range(executions.n_rows):
        if executions["index"][row] == 0 or executions["binary"][row] == NONE:
            continue
        found.n_programs += 1
        tool = identified[row] = _tool(image, row)
        if tool is not None:
            is_compiler = tool.kind in ("compiler", "launcher")
            found.n_compilers += is_compiler
            found.n_failed += is_compiler and executions["status"][row] not in (0, NONE)
            continue
        binary = image.path_string(executions["binary"][row])
        found.others[binary] += 1
        if compiling.is_in(row) and not _is_below_tool(image, row, identified):
            found.unknown[binary] += 1
    if "unread_response_files" in image.tables:
        found.n_unread = len(set(image["unread_response_files"]["execution"]))
    return found


def _tool(image: Image, row: int) -> Tool | None:
    executions = image["executions"]
    span = executions.span("argv.start", row)
    argv0 = image.string(image["arguments"]["string"][span[0]]) if span else b""
    return tools.load().identify(image.path_string(executions["binary"][row]), argv0)


class _Compiling:
    """Tells which executions read x.c and wrote x.o, or the like. A build may have many opens."""

    def __init__(self, image: Image) -> None:
        self._image, opens = image, image["opens"]
        self._start, self._path = image["executions"]["opens.start"], opens["path"]
        self._is_write = bytes(opens["mode"]).translate(WRITE)

    def is_in(self, row: int) -> bool:
        """Tell whether an execution compiled."""
        span = range(self._start[row], self._start[row + 1])
        written = set(self._objects(span))
        return bool(written) and any(
            not self._is_write[each] and self._source(each) in written for each in span
        )

    def _objects(self, span: range) -> Iterator[bytes]:
        """Yield the names of the objects that some opens wrote, without their extension."""
        at = span.start
        while (at := self._is_write.find(1, at, span.stop)) >= 0:
            stem, suffix = splitext(basename(self._image.path_string(self._path[at])))
            if suffix in OBJECTS:
                yield stem
            at += 1

    def _source(self, each: int) -> bytes:
        """Return the name of a source without its extension; empty for other files."""
        path = self._image.path_string(self._path[each])
        return splitext(basename(path))[0] if by_name(path) is FileKind.SOURCE else b""


def _is_below_tool(image: Image, row: int, identified: dict[int, Tool | None]) -> bool:
    """Tell whether a known compiler started an execution, directly or through others."""
    parents, indices = image["executions"]["parent"], image["executions"]["index"]
    seen: set[int] = set()
    while row != NONE and row not in seen:
        seen.add(row)
        row = row - 1 if indices[row] > 1 else parents[row]
        tool = identified.get(row)
        if tool is not None and tool.kind in ("compiler", "launcher"):
            return True
    return False
