# SPDX-License-Identifier: Apache-2.0
"""Executions of compilers -> the tables `compilations*` ("d" of the JSON).

Everything comes from argv, opens and environment of the trace. The build tree is not touched.
docs/compilations.md defines the compilation among a compiler, its launcher and its stages, and the
meaning of each field.
"""

from __future__ import annotations

import functools
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from libetrace.image.file import NewTable
from libetrace.image.header import DTYPES, SCHEMA, group_names, has_one_more

from etrace.compilers.invocation import STDIN, Definition
from etrace.figures import agree, count
from etrace.nfsdb.files import locate
from etrace.nfsdb.owned import check_owner
from etrace.postprocess.compilations.compiled_objects import CompiledObjects
from etrace.postprocess.compilations.compiler_commands import FRONTEND, Command, CommandReader
from etrace.postprocess.compilations.compiler_questions import Questions
from etrace.postprocess.compilations.include_directories import (
    Environment,
    FrontendRun,
    SearchPaths,
    derive,
)
from etrace.postprocess.compilations.probe import Prober, Question
from etrace.postprocess.compilations.process_tree import ProcessTree
from etrace.postprocess.compilations.traced_files import TracedFiles
from etrace.postprocess.run import Strings, Work, product
from etrace.spec.path_style import style_of

UNREAD = "unread_response_files"
TABLES = (*group_names("compilations"), UNREAD)
TYPES = {"c": 1, "c++": 2}


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation, its paths absolute and resolved; `objects` are rows of `paths`."""

    execution: int
    language: str
    is_child: bool
    files: Sequence[bytes]
    includes: Sequence[bytes]
    definitions: Sequence[Definition]
    headers: Sequence[bytes]
    objects: Sequence[int]


class CompilationTables:
    """The columns of these tables, to be appended to."""

    def __init__(self, strings: Strings) -> None:
        self._number = strings.number
        self._columns: Mapping[str, Mapping[str, array[int]]] = {
            table: {
                name: array(DTYPES[column.dtype][0], [0] * has_one_more(name))
                for name, column in SCHEMA[table].columns.items()
            }
            for table in TABLES
        }
        starts = self._columns["compilations"]
        self._owned = [
            (starts[f"{name}.start"], next(iter(self._columns[f"compilation_{name}"].values())))
            for name in ("files", "includes", "definitions", "headers", "objects")
        ]

    def add(self, it: Compilation) -> None:
        """Append one compilation; they come in order of their executions."""
        number, main = self._number, self._columns["compilations"]
        main["execution"].append(it.execution)
        main["language"].append(number(it.language.encode()))
        main["type"].append(TYPES.get(it.language, 0))
        main["is_child"].append(it.is_child)
        definitions = self._columns["compilation_definitions"]
        for each in it.definitions:
            definitions["name"].append(number(each.name))
            definitions["value"].append(number(each.value))
            definitions["is_undef"].append(each.is_undef)
        self._columns["compilation_files"]["string"].extend(map(number, it.files))
        self._columns["compilation_includes"]["string"].extend(map(number, it.includes))
        self._columns["compilation_headers"]["string"].extend(map(number, it.headers))
        self._columns["compilation_objects"]["path"].extend(it.objects)
        for start, column in self._owned:
            start.append(len(column))

    def add_unread(self, unread: Mapping[int, Iterable[bytes]]) -> None:
        """Append the response files that are gone, by row of the execution that named them."""
        columns = self._columns[UNREAD]
        for row, paths in sorted(unread.items()):
            for path in paths:
                columns["execution"].append(row)
                columns["string"].append(self._number(path))

    def tables(self) -> list[NewTable]:
        """Return all of them, in the order of the schema."""
        return [product(name, *columns.values()) for name, columns in self._columns.items()]


NO_FILES = (b"/dev/null",)
PROGRESS_EVERY = 256
UNKNOWN_STDIN = b"/dev/stdin"


class Compilations:
    """Finds the compilations of one image; without a prober no compiler runs."""

    def __init__(self, work: Work, prober: Prober | None = None) -> None:
        self._image, self._work = work.image, work
        self._tree = ProcessTree(work.image)
        self._join = style_of(work.image.attributes).join
        self._files = TracedFiles(work.image)
        self._environment = Environment(work.image, self._files)
        self._searched = SearchPaths(self._files)
        self._objects = CompiledObjects(
            work.image, self._tree, self._environment.temporary_directories()
        )
        self._reader = CommandReader(work.image, self._tree, work.config)
        self._commands = self._reader.commands()
        self._questions = Questions(self._commands.values())
        self._prober = prober
        self._path = functools.cache(work.image.path_string)
        self._answers: Mapping[Question, Sequence[bytes]] = {}
        #: questions about directories that the trace does not show, for compilers that could be run
        self.unanswered: set[Question] = set()

    @property
    def unread(self) -> Mapping[int, Sequence[bytes]]:
        """Missing response files, by the row of the execution that is incomplete without them."""
        return self._reader.unread

    def find(self) -> list[Compilation]:
        """Return all compilations in order of their executions."""
        sources = self._own_sources()
        if self._prober is not None:
            questions = map(self._questions.of, (self._commands[row] for row in sources))
            self._answers = self._prober.ask(filter(None, questions), self._work.progress)
        inner: dict[int, set[bytes]] = {}
        for row, files in sources.items():
            for outer in self._outer(row):
                inner.setdefault(outer, set()).update(files)
        found = []
        for number, (row, files) in enumerate(sources.items()):
            if number % PROGRESS_EVERY == 0:
                self._work.progress("compilations", number, len(sources))
            left = [file for file in files if file not in inner.get(row, ())]
            if left:
                found.append(self._compilation(self._commands[row], left))
        self._work.progress("compilations", len(sources), len(sources))
        return found

    def _outer(self, row: int) -> Iterator[int]:
        """Yield the compilers and launchers around a command, innermost first; stops at a cycle."""
        seen = {row}
        row = self._commands[row].outer
        while row in self._commands and row not in seen:
            seen.add(row)
            yield row
            row = self._commands[row].outer

    def _own_sources(self) -> dict[int, list[bytes]]:
        """Return the sources of each successful command, without those that a compiler made itself.

        Compilers that run on temporary files of a launcher or driver are part of its compilation.
        """
        files = {row: self._sources(command) for row, command in self._commands.items()}
        out = {}
        for row, own in files.items():
            outer = files.get(self._commands[row].outer)
            is_foreign = outer is not None and not set(own) & set(outer)
            if own and not is_foreign and not self._tree.has_failed(row):
                out[row] = own
        return out

    def _sources(self, command: Command) -> list[bytes]:
        paths = []
        for source in command.invocation.sources:
            if source.name == STDIN:
                paths.append(self._redirected(command.row))
            else:
                paths.append(self._files.resolve(self._join(command.cwd, source.name)))
        return [path for path in dict.fromkeys(paths) if path not in NO_FILES]

    def _redirected(self, row: int) -> bytes:
        """Return the file that a shell redirected to the standard input with `< FILE`.

        The shell opened it, or its child did between fork and exec; in that case it is the only
        file that was read there.
        """
        inherited = self._image["inherited"]
        for each in self._image["executions"].span("inherited.start", row):
            if inherited["descriptor"][each] == 0:
                return self._image.path_string(inherited["path"][each])
        opens = self._image["opens"]
        first = self._tree.first_of_process(row)
        read = [
            opens["path"][each]
            for each in self._image["executions"].span("opens.start", first)
            if not opens["mode"][each] & 3
        ]
        if first == row or len(read) != 1:
            return UNKNOWN_STDIN
        return self._image.path_string(read[0])

    def _compilation(self, command: Command, files: Sequence[bytes]) -> Compilation:
        parent = None
        if command.tool.settings.get("role") == FRONTEND:
            parent = self._commands.get(command.outer)
        # a driver adds options of its own to its stage's
        asked = command.invocation if parent is None else parent.invocation
        directories = self._searched.directories(
            asked,
            command.cwd,
            self._environment.of(self._tree.upid[command.row]),
            self._builtin(command),
        )
        return Compilation(
            execution=command.row,
            language=command.invocation.language,
            is_child=parent is not None,
            files=files,
            includes=directories,
            definitions=asked.definitions,
            headers=[self._header(command, name, directories) for name in asked.headers],
            objects=self._objects.made(command, parent),
        )

    def _builtin(self, command: Command) -> Sequence[bytes]:
        """Return the known directories that the compiler searches by itself."""
        invocation = command.invocation
        is_driver = bool(command.tool.settings.get("probe"))
        if invocation.internal or not invocation.is_standard or not is_driver:
            return invocation.internal
        question = self._questions.of(command)
        found = () if question is None else self._answers.get(question, ())
        found = found or self._derived(command)
        if not found and question is not None:
            self.unanswered.add(question)
        return found

    def _derived(self, command: Command) -> Sequence[bytes]:
        """Return the compiler's own directories as far as the stages of its driver show them."""
        invocation = command.invocation
        if invocation.sysroot:
            return ()
        has_cxx = b"-nostdinc++" not in invocation.target
        for row in command.stages:
            found = derive(self._stage(row), invocation.language, has_cxx=has_cxx)
            if found:
                return [each for each in found if self._files.has_certainly(each)]
        return ()

    def _stage(self, row: int) -> FrontendRun:
        paths = self._image["opens"]["path"]
        span = self._image["executions"].span("opens.start", row)
        opened = [self._path(paths[each]) for each in span]
        return FrontendRun(self._reader.binary(row), self._reader.argv(row), opened)

    def _header(self, command: Command, name: bytes, directories: Iterable[bytes]) -> bytes:
        """Return the file of -include; the current directory is searched first."""
        for directory in (command.cwd, *directories):
            path = self._join(directory, name)
            if self._files.path_row(path) >= 0:
                return self._files.resolve(path)
        return self._files.resolve(self._join(command.cwd, name))


@dataclass(frozen=True, slots=True)
class CompilationPhase:
    """`cas pp --compilations`; with `--ask-compilers` it runs compilers for their directories."""

    name: str = "compilations"
    tables: tuple[str, ...] = TABLES
    inputs: tuple[str, ...] = (
        "gcc_spec",
        "gpp_spec",
        "clang_spec",
        "clangpp_spec",
        "armcc_spec",
        "is_asking",
    )

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables; EtraceError when the image is damaged."""
        columns = CompilationTables(work.strings)
        prober = None
        if work.is_asking:
            check_owner(work.image)
            prober = Prober(work.jobs, work.say, build_end_ns(work.image.path))
        finder = Compilations(work, prober)
        for compilation in finder.find():
            columns.add(compilation)
        columns.add_unread(finder.unread)
        if finder.unanswered and not work.is_asking:
            work.say(unknown_directories(finder.unanswered))
        if finder.unread:
            work.say(unread_files(len(finder.unread)))
        return columns.tables()

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Return the number of compilations as text."""
        return count(tables[0].n_rows, "compilation")


def unknown_directories(questions: Iterable[Question]) -> str:
    """Report missing directories in include paths, and the option that adds them."""
    names = sorted({os.fsdecode(each.binary) for each in questions})
    return (
        f"the trace does not show the built-in include directories of {', '.join(names)};"
        " to run those that etrace trusts: cas pp --ask-compilers"
    )


def unread_files(n_commands: int) -> str:
    """Report the number of partly known commands, and how to list them."""
    return agree(
        n_commands,
        "command{s} {is|are} only partly known, because response files are gone or too large;"
        " to list them: cas pp --list-unread",
    )


def build_end_ns(image: Path) -> int:
    """Return when the build was over, by the trace beside an image, else its JSON; 0: unknown."""
    files = locate(image)
    for path in (files.trace, files.json):
        with suppress(OSError):
            return path.stat().st_mtime_ns
    return 0


PHASE = CompilationPhase()
