# SPDX-License-Identifier: Apache-2.0
"""A database -> why it has few compilations or none.

A program that read a source and wrote an object of the same name compiled it, whatever it is
called. When no tool of etrace/compilers describes it, and no known compiler started it, its
compilations are missing. A command line without the source's name is that of a program with a
compiler inside: ant, a daemon of Gradle.

A server that began before the trace compiles unseen. Then a launcher's output was written by no
traced process, or nothing was compiled below the client of a build server: servers.toml.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from pathlib import Path
from posixpath import basename, dirname, splitext
from typing import TYPE_CHECKING, Any, NamedTuple

from libetrace.image.file import Image

from etrace.figures import count
from etrace.query.rows.commands import nearest_commands
from etrace.query.rows.file_kinds import FileKind, by_name
from etrace.spec.database import IS_WRITE, NONE
from etrace.spec.suffixes import OBJECT, listed

if TYPE_CHECKING:
    from etrace.compilers.tools import Tool
    from etrace.postprocess.compilations.traced_files import TracedFiles

_SERVERS = Path(__file__).with_name("servers.toml")
#: what compilers write; .p and .asm are Pascal's and sdcc's
OBJECTS = frozenset(os.fsencode(each) for each in (*listed(OBJECT), ".axf", ".rel", ".p", ".asm"))


class Diagnosis:
    """What ran, for a user who misses entries; programs are counted by path.

    `n_compilers` are executions of known compilers and launchers, `n_failed` those of them that
    failed, `unknown` programs that compiled but are not known, `others` all that are not known.
    `inside` counts the sources of programs with a compiler inside.
    `n_unread` is the number of commands whose response files are gone. `elsewhere` counts the
    sources that the server of a launcher compiled outside of the trace, `silent` the clients of
    other servers below which nothing was compiled. `cures` has what to do by program.
    """

    def __init__(self) -> None:
        self.n_programs = self.n_compilers = self.n_failed = self.n_unread = 0
        self.unknown, self.inside, self.others = (Counter[bytes]() for _ in range(3))
        self.elsewhere, self.silent = Counter[bytes](), Counter[bytes]()
        self.cures: dict[bytes, str] = {}

    def notes(self) -> Iterator[Note]:
        """Yield what was compiled where the trace does not see it."""
        if self.elsewhere:
            files, names = count(self.elsewhere.total(), "source"), _listed(self.elsewhere)
            text = f"{files} compiled by a server outside of the trace: {names}"
            yield Note(text, self._cure(self.elsewhere))
        if self.silent:
            text = f"nothing was compiled below {_listed(self.silent)}: its server began before"
            yield Note(f"{text} the trace", self._cure(self.silent))
        if self.inside:
            files, names = count(self.inside.total(), "source"), _listed(self.inside)
            yield Note(
                f"{files} compiled inside another program: {names}",
                self._cure(self.inside),
                is_lacking=True,
            )

    def _cure(self, programs: Counter[bytes]) -> str:
        named = (self.cures.get(program) for program, _ in programs.most_common())
        return next(filter(None, named), NO_CURE)


class Note(NamedTuple):
    """One message for a user, and what to do; `is_lacking`: there are no compilations of it."""

    text: str
    cure: str
    is_lacking: bool = False


#: programs that a message names
N_LISTED = 5
NO_CURE = "start the server inside of the capture, or let the build run the compiler as a program"


def _listed(programs: Counter[bytes]) -> str:
    shown = [f"{os.fsdecode(path)} ({n:,})" for path, n in programs.most_common(N_LISTED)]
    n_more = len(programs) - len(shown)
    return ", ".join([*shown, f"and {n_more} more"] if n_more else shown)


def unlisted(image: Image) -> Diagnosis:
    """Find `unknown` and `inside` alone: the compilers' tables are read only when needed."""
    found = Diagnosis()
    compiling, known = _Compiling(image), _Tools(image)
    working = set[int]()
    is_known = "compilations" in image.tables
    listed = set(image["compilations"]["execution"]) if is_known else set[int]()
    for row in _programs(image):
        sources = compiling.compiled_by(row)
        if sources or row in listed:
            working.add(row)
        if sources and row not in listed and listed.isdisjoint(known.above(row)):
            _add_unlisted(found, row, sources, known)
    _Servers(image, known, found).add(working)
    return found


def diagnose(image: Image) -> Diagnosis:
    """Look at all executions of a database."""
    found, executions = Diagnosis(), image["executions"]
    compiling, known = _Compiling(image), _Tools(image)
    is_known = "compilations" in image.tables
    working = set(image["compilations"]["execution"]) if is_known else set[int]()
    for row in _programs(image):
        found.n_programs += 1
        tool = known.tool(row)
        if tool is None:
            found.others[image.path_string(executions["binary"][row])] += 1
            if sources := compiling.compiled_by(row):
                working.add(row)
            _add_unlisted(found, row, sources, known)
            continue
        is_compiler = tool.kind in ("compiler", "launcher")
        found.n_compilers += is_compiler
        found.n_failed += is_compiler and executions["status"][row] not in (0, NONE)
    _Servers(image, known, found).add(working)
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
        return
    words = known.argv(row)
    server = next((s for s in known.servers if _has(words, s.get("inside", ()))), None)
    if server is not None:
        binary = b"%s in %s" % (server["title"].encode(), binary)
        found.cures[binary] = server["cure"]
    found.inside[binary] += sum(sources.values())


def _has(words: Iterable[bytes], wanted: Iterable[str]) -> bool:
    """Return whether any of some words has one of some texts in it."""
    texts = [text.encode() for text in wanted]
    return any(text in word for word in words for text in texts)


class _Servers:
    """Finds what servers compiled that the trace does not have."""

    def __init__(self, image: Image, known: _Tools, found: Diagnosis) -> None:
        self._image, self._known, self._found = image, known, found

    def add(self, working: Set[int]) -> None:
        """Add both kinds; `working` are the executions that compiled."""
        self._add_launched()
        self._add_clients(working)

    def _add_launched(self) -> None:
        """Count the sources of launchers whose output nobody in the trace wrote."""
        if "compilations" not in self._image.tables:
            return
        table, status = self._image["compilations"], self._image["executions"]["status"]
        for at, row in enumerate(table["execution"]):
            if table.span("objects.start", at) or status[row] not in (0, NONE):
                continue
            tool = self._known.tool(row)
            if tool is not None and tool.kind == "launcher" and not self._is_made(row, tool):
                server = self._server(tool.name, self._known.binary(row))
                title = (server or {}).get("title", tool.name).encode()
                self._found.elsewhere[title] += len(table.span("files.start", at))
                if server is not None:
                    self._found.cures[title] = server["cure"]

    def _server(self, *names: str | bytes) -> Mapping[str, Any] | None:
        """Return the server of a client by its names."""
        texts = (os.fsdecode(name).rpartition("/")[2] for name in names)
        return next((self._clients[text] for text in texts if text in self._clients), None)

    @cached_property
    def _clients(self) -> Mapping[str, Mapping[str, Any]]:
        return {client: s for s in self._known.servers for client in s.get("clients", ())}

    def _is_made(self, row: int, launcher: Tool) -> bool:
        """Return whether a process wrote what a launcher was asked for, or nothing was."""
        from etrace.compilers import tools
        from etrace.compilers.invocation import Step, read_invocation, select_tool
        from etrace.compilers.options import values

        selected = select_tool(tools.load(), launcher, self._known.argv(row))
        asked = None if selected is None else read_invocation(*selected)
        if selected is None or asked is None:
            return False
        cwd = self._image.string(self._image["executions"]["cwd"][row])
        paths = [self._files.join(cwd, name) for name in asked.outputs]
        if asked.step is Step.CHECK or any(path.startswith(b"/dev/") for path in paths):
            return True
        folders = values(selected[0].options.parse(selected[1]), "directory")
        below = tuple(self._files.join(cwd, name).rstrip(b"/") + b"/" for name in folders)
        return any(map(self._is_written, paths)) or (
            bool(below) and any(path.startswith(below) for path in self._written)
        )

    @cached_property
    def _files(self) -> TracedFiles:
        from etrace.postprocess.compilations.traced_files import TracedFiles

        return TracedFiles(self._image)

    def _is_written(self, path: bytes) -> bool:
        return self._files.resolve(path) in self._written

    @cached_property
    def _written(self) -> Set[bytes]:
        opens = self._image["opens"]
        is_write = bytes(opens["mode"]).translate(IS_WRITE)
        rows = {path for path, written in zip(opens["path"], is_write, strict=True) if written}
        return {self._image.path_string(path) for path in rows}

    def _add_clients(self, working: Set[int]) -> None:
        """Count clients below which nothing was compiled, of servers that the trace lacks."""
        status, busy = self._image["executions"]["status"], set[int]()
        asking: dict[int, Mapping[str, Any]] = {}
        for row in _programs(self._image):
            server = self._client(row)
            if server is not None and status[row] in (0, NONE):
                asking[row] = server
        if not asking:
            return
        for row in working:
            busy.add(row)
            busy.update(self._known.above(row))
        seen = self._running({server["title"]: server for server in asking.values()})
        for row, server in asking.items():
            is_inner = any(each in asking for each in self._known.above(row))
            if row not in busy and server["title"] not in seen and not is_inner:
                title = server["title"].encode()
                self._found.silent[title] += 1
                self._found.cures[title] = server["cure"]

    def _running(self, servers: Mapping[str, Mapping[str, Any]]) -> Set[str]:
        """Return the titles of those servers that the trace has."""
        found = set[str]()
        for row in _programs(self._image):
            words = self._known.argv(row)
            found |= {t for t, s in servers.items() if _has(words, s.get("servers", ()))}
        return found

    def _client(self, row: int) -> Mapping[str, Any] | None:
        """Return the server that a client of the table asks for work, without launchers."""
        name = self._known.binary(row)
        is_java = name.rpartition(b"/")[2] == b"java"
        if not is_java and self._server(name) is None:
            return None
        words = self._known.argv(row)
        server = None if self._known.is_launcher(row) else self._server(name, *words * is_java)
        texts = set(map(os.fsdecode, words[1:]))
        return None if server is None or not texts.isdisjoint(server.get("idle", ())) else server


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
        argv0 = next(self._argv(row), b"")
        return tools.load().tool_of(self.binary(row), argv0, lambda: self.argv(row))

    def binary(self, row: int) -> bytes:
        """Return the path of the program that an execution ran."""
        return self._image.path_string(self._executions["binary"][row])

    @cached_property
    def servers(self) -> Sequence[Mapping[str, Any]]:
        """The tables of servers.toml."""
        return list(tomllib.loads(_SERVERS.read_text()).values())

    def argv(self, row: int) -> list[bytes]:
        """Return the arguments of an execution."""
        return list(self._argv(row))

    def is_launcher(self, row: int) -> bool:
        """Return whether an execution ran a launcher such as ccache."""
        tool = self.tool(row)
        return tool is not None and tool.kind == "launcher"

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
