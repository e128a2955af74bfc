# SPDX-License-Identifier: Apache-2.0
"""A database -> why it has few compilations or none.

A program that read a source and wrote an object of the same name compiled it, whatever it is
called. When no tool of etrace/compilers describes it, and no known compiler started it, its
compilations are missing. A command line without the source's name is that of a program with a
compiler inside: ant, a daemon of Gradle.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from itertools import chain
from posixpath import basename, dirname, splitext
from typing import TYPE_CHECKING

from libetrace.image.file import Image

from etrace.query.rows.commands import nearest_commands
from etrace.query.rows.file_kinds import FileKind, by_name
from etrace.spec.database import IS_WRITE, NONE
from etrace.spec.suffixes import OBJECT, listed

if TYPE_CHECKING:
    from etrace.compilers.tools import Tool

#: what compilers write; .p and .asm are Pascal's and sdcc's
OBJECTS = frozenset(os.fsencode(each) for each in (*listed(OBJECT), ".axf", ".rel", ".p", ".asm"))


class Diagnosis:
    """What ran, for a user who misses entries; programs are counted by path.

    `n_compilers` are executions of known compilers and launchers, `n_failed` those of them that
    failed, `unknown` programs that compiled but are not known, `others` all that are not known.
    `inside` counts the sources of programs with a compiler inside.
    `n_unread` is the number of commands whose response files are gone.
    """

    def __init__(self) -> None:
        self.n_programs = self.n_compilers = self.n_failed = self.n_unread = 0
        self.unknown, self.inside, self.others = (Counter[bytes]() for _ in range(3))


def unlisted(image: Image) -> Diagnosis:
    """Find `unknown` and `inside` alone: the compilers' tables are read only when needed."""
    found = Diagnosis()
    compiling, known = _Compiling(image), _Tools(image)
    is_known = "compilations" in image.tables
    listed = set(image["compilations"]["execution"]) if is_known else set[int]()
    for row in _programs(image):
        sources = compiling.compiled_by(row)
        if sources and row not in listed and listed.isdisjoint(known.above(row)):
            _add_unlisted(found, row, sources, known)
    return found


def diagnose(image: Image) -> Diagnosis:
    """Look at all executions of a database."""
    found, executions = Diagnosis(), image["executions"]
    compiling, known = _Compiling(image), _Tools(image)
    for row in _programs(image):
        found.n_programs += 1
        tool = known.tool(row)
        if tool is None:
            found.others[image.path_string(executions["binary"][row])] += 1
            _add_unlisted(found, row, compiling.compiled_by(row), known)
            continue
        is_compiler = tool.kind in ("compiler", "launcher")
        found.n_compilers += is_compiler
        found.n_failed += is_compiler and executions["status"][row] not in (0, NONE)
    if "unread_response_files" in image.tables:
        found.n_unread = len(set(image["unread_response_files"]["execution"]))
    return found


def _programs(image: Image) -> Iterator[int]:
    executions = image["executions"]
    rows = zip(executions["index"], executions["binary"], strict=True)
    return (row for row, (index, binary) in enumerate(rows) if index and binary != NONE)


def _add_unlisted(found: Diagnosis, row: int, sources: Mapping[bytes, int], known: _Tools) -> None:
    if not sources or known.tool(row) is not None or known.is_below_compiler(row):
        return
    binary = known.binary(row)
    if known.names_one(row, sources):
        found.unknown[binary] += 1
    else:
        found.inside[binary] += sum(sources.values())


class _Tools:
    """The executions of an image and the tools of etrace/compilers that they ran."""

    def __init__(self, image: Image) -> None:
        self._image, self._executions = image, image["executions"]
        self._found: dict[int, Tool | None] = {}

    def tool(self, row: int) -> Tool | None:
        """Return the tool that an execution ran, None for an unknown program."""
        if row not in self._found:
            self._found[row] = self._identify(row)
        return self._found[row]

    def _identify(self, row: int) -> Tool | None:
        from etrace.compilers import tools

        if self._executions["index"][row] == 0 or self._executions["binary"][row] == NONE:
            return None
        return tools.load().identify(self.binary(row), next(self._argv(row), b""))

    def binary(self, row: int) -> bytes:
        """Return the path of the program that an execution ran."""
        return self._image.path_string(self._executions["binary"][row])

    def _argv(self, row: int) -> Iterator[bytes]:
        strings = self._image["arguments"]["string"]
        return (self._image.string(strings[i]) for i in self._executions.span("argv.start", row))

    def names_one(self, row: int, sources: Container[bytes]) -> bool:
        """Return whether a command line names one of these sources, or a file that may do so."""
        return any(
            word.startswith(b"@") or splitext(basename(word))[0] in sources
            for word in self._argv(row)
        )

    def is_below_compiler(self, row: int) -> bool:
        """Return whether a known compiler started an execution, directly or through others."""
        above = (self.tool(each) for each in self.above(row))
        return any(tool and tool.kind in ("compiler", "launcher") for tool in above)

    def above(self, row: int) -> Iterator[int]:
        """Yield what a process executed before, and its ancestors; a damaged one may be a ring."""
        parents, indices = self._executions["parent"], self._executions["index"]
        seen = {NONE, row}
        while (row := row - 1 if indices[row] > 1 else parents[row]) not in seen:
            seen.add(row)
            yield row


class _Compiling:
    """Says what programs compiled: x.c, when they wrote x.o. A build may have many opens."""

    def __init__(self, image: Image) -> None:
        self._image, opens = image, image["opens"]
        self._start, self._path = image["executions"]["opens.start"], opens["path"]
        self._is_write = bytes(opens["mode"]).translate(IS_WRITE)
        self._threads: defaultdict[int, list[int]] = defaultdict(list)
        executions = image["executions"]
        nearest = nearest_commands(executions)
        for row, binary in enumerate(executions["binary"]):
            if binary == NONE and self._start[row] < self._start[row + 1]:
                self._threads[nearest[row]].append(row)

    def compiled_by(self, row: int) -> Mapping[bytes, int]:
        """Return the names of the sources that an execution and its threads compiled.

        They are without extension; the value says how many have the name, in several directories.
        What reads such objects as well copies them.
        """
        spans = [
            range(self._start[each], self._start[each + 1])
            for each in (row, *self._threads.get(row, ()))
        ]
        written = frozenset(chain.from_iterable(map(self._objects, spans)))
        return self._compiled(chain.from_iterable(spans), written) if written else {}

    def _compiled(self, opened: Iterable[int], written: Set[bytes]) -> Mapping[bytes, int]:
        places: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for path in written:
            places[splitext(basename(path))[0]].add(dirname(path))
        found: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for each in opened:
            if self._is_write[each]:
                continue
            path = self._image.path_string(self._path[each])
            stem, suffix = splitext(basename(path))
            if stem in places and suffix in OBJECTS and path not in written:
                return {}
            if stem in places and by_name(path) is FileKind.SOURCE:
                found[stem].add(path)
        return {stem: min(len(paths), len(places[stem])) for stem, paths in found.items()}

    def _objects(self, span: range) -> Iterator[bytes]:
        """Yield the paths of the objects that some opens wrote."""
        at = span.start
        while (at := self._is_write.find(1, at, span.stop)) >= 0:
            path = self._image.path_string(self._path[at])
            if splitext(path)[1] in OBJECTS:
                yield path
            at += 1
