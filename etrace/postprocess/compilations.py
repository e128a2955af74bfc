# SPDX-License-Identifier: Apache-2.0
"""Executions of compilers -> the tables `compilations*` ("d" of the JSON, seed 001).

Everything comes from argv, opens and environment of the trace; the build tree is not touched and
no compiler is run there. Which execution of a compiler, its launcher and its stages is the
compilation, and what each field means: docs/compilations.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import join

from libetrace.image import DTYPES, Image, NewTable

from etrace.compilers.invocation import STDIN, Definition
from etrace.nfsdb.files import locate
from etrace.postprocess.compiled_objects import CompiledObjects
from etrace.postprocess.compiler_commands import FRONTEND, Command, CommandReader
from etrace.postprocess.probe import Prober, Question
from etrace.postprocess.process_tree import ProcessTree
from etrace.postprocess.run import Strings, Work, product
from etrace.postprocess.search_path import VARIABLES, SearchPaths
from etrace.postprocess.traced_files import TracedFiles
from etrace.spec.database import PRODUCTS

TABLES = tuple(table for table in PRODUCTS if table.name.startswith("compilation"))
TYPES = {"c": 1, "c++": 2}
TEMPORARY_VARIABLE = b"TMPDIR"
NO_FILES = (b"/dev/null",)
PROGRESS_EVERY = 256
UNKNOWN_STDIN = b"/dev/stdin"
#: the -x of a compiler that is asked for its directories
ASKED_AS = {
    "c": "c",
    "c++": "c++",
    "objective-c": "objective-c",
    "objective-c++": "objective-c++",
    "assembler": "c",
}
DIRECTORY_OPTIONS = (
    b"--sysroot",
    b"-isysroot",
    b"-resource-dir",
    b"--gcc-toolchain",
    b"-gcc-toolchain",
)


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


class Questions:
    """What to ask the compiler of each command; equal ones are one object."""

    def __init__(self, commands: Iterable[Command], files: TracedFiles) -> None:
        self._files = files
        self._by_name: dict[bytes, bytes] = {}  # of compilers, to know what a launcher launched
        for command in commands:
            if not command.is_launched:
                self._by_name.setdefault(command.binary.rpartition(b"/")[2], command.binary)

    def of(self, command: Command) -> Question | None:
        """Return what to ask, None when there is nothing or nobody to ask."""
        invocation = command.invocation
        language = ASKED_AS.get(invocation.language)
        binary = self._launched(command.argv0) if command.is_launched else command.binary
        if not (language and binary and invocation.is_standard):
            return None
        if not command.tool.settings.get("probe"):
            return None
        return Question(binary, language, rooted_options(invocation.target, command.cwd))

    def _launched(self, argv0: bytes) -> bytes:
        return argv0 if argv0.startswith(b"/") else self._by_name.get(argv0, b"")


def rooted_options(options: Sequence[bytes], cwd: bytes) -> tuple[bytes, ...]:
    """Make the directories in options absolute: the compiler is asked elsewhere."""
    out: list[bytes] = []
    for option in options:
        flag, equals, value = option.partition(b"=")
        if out and out[-1] in DIRECTORY_OPTIONS and not equals:
            out.append(join(cwd, option))
        elif equals and flag in DIRECTORY_OPTIONS:
            out.append(flag + equals + join(cwd, value))
        else:
            out.append(option)
    return tuple(out)


class Environment:
    """The few variables that matter here, by process."""

    def __init__(self, image: Image, files: TracedFiles) -> None:
        wanted: dict[int, tuple[bytes, bytes]] = {}
        for name in (*VARIABLES, TEMPORARY_VARIABLE):
            for row in files.strings_with(name + b"="):
                wanted[row] = (name, image.string(row)[len(name) + 1 :])
        self._of: dict[int, dict[bytes, bytes]] = {}
        if not wanted:
            return
        table = image["environment"]
        for upid, string in zip(table["upid"], table["string"], strict=True):
            if string in wanted:
                name, value = wanted[string]
                self._of.setdefault(upid, {})[name] = value

    def of(self, upid: int) -> dict[bytes, bytes]:
        """Return the variables of a process by name."""
        return self._of.get(upid, {})

    def temporary_directories(self) -> set[bytes]:
        """Return every value of TMPDIR."""
        values = (each.get(TEMPORARY_VARIABLE, b"") for each in self._of.values())
        return {value.rstrip(b"/") for value in values} - {b""}


class Compilations:
    """Finds the compilations of one image; without a prober no compiler is run."""

    def __init__(self, work: Work, prober: Prober | None = None) -> None:
        self._image, self._work = work.image, work
        self._tree = ProcessTree(work.image)
        self._files = TracedFiles(work.image)
        self._environment = Environment(work.image, self._files)
        self._searched = SearchPaths(self._files)
        self._objects = CompiledObjects(
            work.image, self._tree, self._environment.temporary_directories()
        )
        self._commands = CommandReader(work.image, self._tree, work.config).commands()
        self._questions = Questions(self._commands.values(), self._files)
        self._prober = prober
        self._answers: Mapping[Question, Sequence[bytes]] = {}

    def find(self) -> list[Compilation]:
        """Return all compilations in order of their executions."""
        sources = self._own_sources()
        inner: dict[int, set[bytes]] = {}
        for row, files in sources.items():
            outer = self._commands[row].outer
            while outer >= 0:
                inner.setdefault(outer, set()).update(files)
                outer = self._commands[outer].outer if outer in self._commands else -1
        compiling = [self._commands[row] for row in sources]
        if self._prober is not None:
            questions = filter(None, map(self._questions.of, compiling))
            self._answers = self._prober.ask(questions, self._work.progress)
        found = []
        for number, (row, files) in enumerate(sources.items()):
            if number % PROGRESS_EVERY == 0:
                self._work.progress("compilations", number, len(sources))
            left = [file for file in files if file not in inner.get(row, ())]
            if left:
                found.append(self._compilation(self._commands[row], left))
        self._work.progress("compilations", len(sources), len(sources))
        return found

    def _own_sources(self) -> dict[int, list[bytes]]:
        """Return the sources of each command that succeeded, less those a compiler made itself.

        What a launcher or driver lets another compiler do with temporary files is part of its own
        compilation.
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
                paths.append(self._files.resolve(join(command.cwd, source.name)))
        return [path for path in dict.fromkeys(paths) if path not in NO_FILES]

    def _redirected(self, row: int) -> bytes:
        """Return the file that the standard input was, as a shell redirects it with `< FILE`.

        The shell opened it itself, or its child did between fork and exec: then it is the only file
        that was read there.
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
        """Return the directories that the compiler searches by itself, as far as is known."""
        question = self._questions.of(command)
        if question is None:
            return command.invocation.internal
        return self._answers.get(question, ())

    def _header(self, command: Command, name: bytes, directories: Iterable[bytes]) -> bytes:
        """Return what -include meant: looked for in the current directory first."""
        for directory in (command.cwd, *directories):
            path = join(directory, name)
            if self._files.path_row(path) >= 0:
                return self._files.resolve(path)
        return self._files.resolve(join(command.cwd, name))


# ---- tables ----


class _Columns:
    """The columns of the tables `compilations*`, to be appended to."""

    def __init__(self, strings: Strings) -> None:
        self._number = strings.number
        self._columns: Mapping[str, Mapping[str, array[int]]] = {
            table.name: {
                c.name: array(DTYPES[c.dtype][0], [0] * c.name.endswith(".start"))
                for c in table.columns
            }
            for table in TABLES
        }
        starts = self._columns["compilations"]
        self._owned = [
            (starts[f"{name}.start"], next(iter(self._columns[f"compilation_{name}"].values())))
            for name in ("files", "includes", "definitions", "headers", "objects")
        ]

    def add(self, it: Compilation) -> None:
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

    def tables(self) -> list[NewTable]:
        return [product(name, *columns.values()) for name, columns in self._columns.items()]


@dataclass(frozen=True, slots=True)
class CompilationPhase:
    """`cas pp --compilations`; without `--no-probe` it asks compilers for their own directories."""

    name: str = "compilations"
    tables: tuple[str, ...] = field(default=tuple(table.name for table in TABLES))
    inputs: tuple[str, ...] = (
        "gcc_spec",
        "gpp_spec",
        "clang_spec",
        "clangpp_spec",
        "armcc_spec",
        "is_probing",
    )
    needs: tuple[str, ...] = ()

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables; EtraceError when the image is damaged."""
        columns = _Columns(work.strings)
        prober = Prober(work.jobs, build_end_ns(work.image.path)) if work.is_probing else None
        for compilation in Compilations(work, prober).find():
            columns.add(compilation)
        return columns.tables()

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Say how many there are."""
        return f"{tables[0].n_rows} compilations"


def build_end_ns(image: Path) -> int:
    """Return when the build was over, by the trace beside an image, else its JSON; 0: unknown."""
    files = locate(image)
    for path in (files.trace, files.json):
        with suppress(OSError):
            return path.stat().st_mtime_ns
    return 0


PHASE = CompilationPhase()
