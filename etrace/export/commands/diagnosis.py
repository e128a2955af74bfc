# SPDX-License-Identifier: Apache-2.0
"""A database -> why it has few compilations or none.

A program that read a source and wrote an object of the same name compiled it, whatever it is
called. When no tool of etrace/compilers describes it, and no known compiler started it, its
compilations are missing. A command line without the source's name is that of a program with a
compiler inside: ant, a daemon of Gradle.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import chain
from posixpath import basename, splitext

from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.tools import Tool
from etrace.postprocess.compilations.compiled_objects import WRITE
from etrace.query.classes.file_kinds import FileKind, by_name
from etrace.query.classes.nearest_command import nearest_commands
from etrace.spec.database import NONE

OBJECTS = frozenset(
    b".o .obj .lo .os .bc .axf .rel .p .asm .class .cmo .cmx .beam".split()
)  # fmt: skip


@dataclass(slots=True)
class Diagnosis:
    """What ran, for a user who misses entries; programs are counted by path.

    `n_compilers` are executions of known compilers and launchers, `n_failed` those of them that
    failed, `unknown` programs that compiled but are not known, `others` all that are not known.
    `inside` counts the sources of programs with a compiler inside.
    `n_unread` is the number of commands whose response files are gone.
    """

    n_programs: int = 0
    n_compilers: int = 0
    n_failed: int = 0
    n_unread: int = 0
    unknown: Counter[bytes] = field(default_factory=Counter)
    inside: Counter[bytes] = field(default_factory=Counter)
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
        sources = compiling.compiled_by(row)
        if not sources or _is_below_tool(image, row, identified):
            continue
        if _names_one(image, row, sources):
            found.unknown[binary] += 1
        else:
            found.inside[binary] += len(sources)
    if "unread_response_files" in image.tables:
        found.n_unread = len(set(image["unread_response_files"]["execution"]))
    return found


def _tool(image: Image, row: int) -> Tool | None:
    argv0 = next(_argv(image, row), b"")
    return tools.load().identify(image.path_string(image["executions"]["binary"][row]), argv0)


def _argv(image: Image, row: int) -> Iterator[bytes]:
    arguments = image["arguments"]["string"]
    return (image.string(arguments[i]) for i in image["executions"].span("argv.start", row))


def _names_one(image: Image, row: int, sources: Set[bytes]) -> bool:
    """Tell whether a command line names one of these sources, or a file that may list them."""
    return any(
        word.startswith(b"@") or splitext(basename(word))[0] in sources
        for word in _argv(image, row)
    )


class _Compiling:
    """Tells what programs compiled: x.c, when they wrote x.o. A build may have many opens."""

    def __init__(self, image: Image) -> None:
        self._image, opens = image, image["opens"]
        self._start, self._path = image["executions"]["opens.start"], opens["path"]
        self._is_write = bytes(opens["mode"]).translate(WRITE)
        self._threads: defaultdict[int, list[int]] = defaultdict(list)
        executions = image["executions"]
        nearest = nearest_commands(executions)
        for row, binary in enumerate(executions["binary"]):
            if binary == NONE and self._start[row] < self._start[row + 1]:
                self._threads[nearest[row]].append(row)

    def compiled_by(self, row: int) -> Set[bytes]:
        """Return the names of the sources that an execution and its threads compiled.

        They are without extension. What reads such objects as well copies them.
        """
        spans = [
            range(self._start[each], self._start[each + 1])
            for each in (row, *self._threads.get(row, ()))
        ]
        written = set(chain.from_iterable(map(self._objects, spans)))
        return self._compiled(chain.from_iterable(spans), written) if written else frozenset()

    def _compiled(self, opened: Iterable[int], written: Set[bytes]) -> Set[bytes]:
        found: set[bytes] = set()
        for each in opened:
            if self._is_write[each]:
                continue
            path = self._image.path_string(self._path[each])
            stem, suffix = splitext(basename(path))
            if stem in written and suffix in OBJECTS:
                return frozenset()
            if stem in written and by_name(path) is FileKind.SOURCE:
                found.add(stem)
        return found

    def _objects(self, span: range) -> Iterator[bytes]:
        """Yield the names of the objects that some opens wrote, without their extension."""
        at = span.start
        while (at := self._is_write.find(1, at, span.stop)) >= 0:
            stem, suffix = splitext(basename(self._image.path_string(self._path[at])))
            if suffix in OBJECTS:
                yield stem
            at += 1


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
