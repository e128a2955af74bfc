# SPDX-License-Identifier: Apache-2.0
"""Executions -> those that ran a compiler or its launcher, with what their argv asks for.

For `gcc @FILE` whose FILE is gone, the stages that the driver started say it: gcc repeats the
content on the command lines of cc1, as and collect2 (gcc/gcc.cc, cc1_options and
cpp_unique_options). Only -I may be in another temporary file, but as gets the same directories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from libetrace.depend.configuration import Config
from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.invocation import (
    ASSEMBLER,
    STDIN,
    Invocation,
    Source,
    Step,
    read_invocation,
    select_tool,
)
from etrace.compilers.options import INPUT, Argument, values
from etrace.compilers.response import Expanded
from etrace.compilers.tools import RUNNER, Running, Tool
from etrace.postprocess.compilations.process_tree import ProcessTree
from etrace.postprocess.compilations.traced_files import response_files
from etrace.spec.path_style import style_of

AS = "as"
LTO = "lto1"
LINKER = "linker"
PREPROCESS = b"-E"
#: cc1 preprocesses assembler
ASSEMBLER_MARK = b"-lang-asm"
DEFINE = b"-D"


@dataclass(frozen=True, slots=True)
class Stage:
    """One program that a driver started.

    `has_all` is False when one of its response files is gone; `made` are the inputs that another
    stage wrote.
    """

    tool: Tool
    words: Sequence[bytes]
    has_all: bool
    made: Collection[bytes] = ()


def recover(
    driver: Tool, own: Invocation | None, stages: Sequence[Stage]
) -> tuple[Invocation | None, bool]:
    """Return the work of a driver (None when it compiled nothing), and whether it is complete.

    `own` is the known part of the driver's command line.
    """
    compiling = [each for each in stages if each.tool.kind != LINKER]
    fronts = [each for each in compiling if each.tool.name not in (AS, LTO)]
    read = [(each, _read(each)) for each in compiling]
    is_preprocessed = all(PREPROCESS in each.words for each in compiling)
    sources = [] if is_preprocessed else _sources(read)
    if not sources:
        return own, own is None and bool(stages)
    it = next((found for each, found in read if found and each in fronts), None)
    it = it or Invocation(driver)
    of_as = [found for each, found in read if found and each.tool.name == AS]
    has_all = all(each.has_all for each in fronts)
    if not has_all and not it.include and of_as:
        it.include = of_as[0].include
        has_all = True
    it.tool, it.sources = driver, sources
    languages = [source.language for source in sources]
    it.language = next((each for each in languages if each != ASSEMBLER), ASSEMBLER)
    it.step, it.outputs = _made(stages, [found for _, found in read if found])
    if own is not None and own.outputs:
        it.outputs = own.outputs
    return it, has_all


def _read(stage: Stage) -> Invocation | None:
    """Read a stage's words, also with -E; a driver joins its own definitions to -D, as in -DX."""
    words = [
        word
        for word in stage.words
        if word != PREPROCESS and not (word.startswith(DEFINE) and word != DEFINE)
    ]
    return read_invocation(stage.tool, words)


def _sources(read: Sequence[tuple[Stage, Invocation | None]]) -> list[Source]:
    """Return the inputs of stages without the outputs of other stages."""
    made = {name for _, found in read if found for name in found.outputs}
    found = {}
    for stage, _ in read:
        if stage.tool.name == LTO:
            continue
        for argument in stage.tool.options.parse(stage.words):
            name = argument.value
            if argument.meaning != INPUT or name in made or name in stage.made:
                continue
            if name == STDIN and stage.tool.name == AS:  # -pipe
                continue
            is_assembler = ASSEMBLER_MARK in stage.words
            found[name] = Source(name, ASSEMBLER if is_assembler else stage.tool.language)
    return list(found.values())


def _made(stages: Sequence[Stage], read: Sequence[Invocation]) -> tuple[Step, list[bytes]]:
    """Return the last step and its outputs."""
    for stage in stages:
        if stage.tool.kind == LINKER:
            return Step.LINK, values(stage.tool.options.parse(stage.words), "output")[-1:]
    of_as = [name for each in read if each.tool.name == AS for name in each.outputs]
    if of_as:
        return Step.OBJECT, of_as
    return Step.ASSEMBLY, [name for each in read for name in each.outputs]


#: what runs only in the service of a driver, and is not a compilation when one was seen
STAGE = "stage"
COLLECT2, LINKER_TOOL = b"collect2", "ld"
#: of the mode of an open
WRITTEN = 3
#: a stage that is counted instead of its driver
FRONTEND = "frontend"


@dataclass(frozen=True, slots=True)
class Command:
    """One execution that could be a compilation.

    `outer` is the row of the compiler or launcher that started it, -1 without one. `binary` is what
    was executed, `argv0` the compiler's name as given: of a launcher they are two programs.
    `stages` are the rows of the stages that it started.
    """

    row: int
    tool: Tool
    binary: bytes
    cwd: bytes
    invocation: Invocation
    outer: int
    is_launched: bool
    argv0: bytes
    stages: Sequence[int]


class CommandReader:
    """Reads the executions of one image."""

    def __init__(self, image: Image, tree: ProcessTree, config: Config) -> None:
        executions = image["executions"]
        self._image, self._tree = image, tree
        self._binary = executions["binary"]
        self._cwd = executions["cwd"]
        self._argv = executions["argv.start"]
        self._arguments = image["arguments"]["string"]
        self._strings: dict[int, bytes] = {}
        self._join = style_of(image.attributes).join
        self._tools = tools.load()
        self._response_files = response_files(image)
        #: row of a command that is only partly known -> its response files that are gone
        self.unread: dict[int, tuple[bytes, ...]] = {}
        self._known: dict[tuple[int, int], Tool | None] = {}
        self._ran: dict[int, Running] = {}
        self._configured = [
            (pattern, self._tools[name])
            for patterns, name in (
                (config.clangpp_spec, "clang++"),
                (config.clang_spec, "clang"),
                (config.gcc_spec, "gcc"),
                (config.gpp_spec, "g++"),
                (config.armcc_spec, "armcc"),
            )
            for pattern in patterns
        ]

    def commands(self) -> dict[int, Command]:
        """Return the commands that compile, by row of `executions`, failed ones too."""
        compilers = dict(self._compilers())
        outer = {row: self._outer(row, compilers) for row in compilers}
        stages: dict[int, list[int]] = {}
        for row, tool in compilers.items():
            if tool.settings.get("role") == STAGE and outer[row] >= 0:
                stages.setdefault(outer[row], []).append(row)
        owned = {row for rows in stages.values() for row in rows}
        found: dict[int, Command] = {}
        for row, tool in compilers.items():
            if row not in owned:
                command = self._command(row, tool, outer[row], stages.get(row, ()))
                if command is not None:
                    found[row] = command
        launched = {command.outer for command in found.values()}
        self.unread = {row: it for row, it in self.unread.items() if row not in launched}
        return found

    def _compilers(self) -> Iterator[tuple[int, Tool]]:
        for row, index in enumerate(self._tree.index):
            tool = self._tool(row) if index > 0 else None
            if tool is not None and tool.kind in ("compiler", "launcher"):
                yield row, tool

    def _tool(self, row: int) -> Tool | None:
        """Identify what an execution ran, by its binary and argv[0]; each pair once.

        Those that run another program in their own process are looked through.
        """
        tool = self._own_tool(row)
        return self._running(row).tool if tool is not None and tool.kind == RUNNER else tool

    def _own_tool(self, row: int) -> Tool | None:
        start, end = self._argv[row], self._argv[row + 1]
        key = (self._binary[row], self._arguments[start] if start < end else -1)
        if key not in self._known:
            binary = self.binary(row)
            argv0 = self._string(key[1]) if key[1] >= 0 else b""
            self._known[key] = self._tools.identify(binary, argv0) or self._by_config(binary)
        return self._known[key]

    def _running(self, row: int) -> Running:
        """Return what an execution of a runner runs; java reads response files before that."""
        if row not in self._ran:
            self._ran[row] = self._tools.running(
                self.binary(row),
                self._recorded(row),
                lambda argv, tool: self._expanded(row, argv, tool).argv,
            )
        return self._ran[row]

    def _by_config(self, binary: bytes) -> Tool | None:
        text = binary.decode("utf-8", "surrogateescape")
        return next((tool for glob, tool in self._configured if fnmatchcase(text, glob)), None)

    def _outer(self, row: int, compilers: dict[int, Tool]) -> int:
        """Return the compiler or launcher that became this execution, or else forked it."""
        if self._tree.index[row] > 1 and row - 1 in compilers:
            return row - 1
        parent: int = self._tree.parent[row]
        return parent if parent in compilers else -1

    def _command(self, row: int, tool: Tool, outer: int, stages: Sequence[int]) -> Command | None:
        argv = self.argv(row)
        selected = select_tool(self._tools, tool, argv)
        if selected is None:
            return None
        compiler, words = selected
        name = argv[len(argv) - len(words) - 1]
        expanded = self._expanded(row, (name, *words), compiler)
        invocation = read_invocation(compiler, expanded.argv[1:])
        if expanded.missing:
            invocation = self._recovered(row, compiler, invocation, stages, expanded.missing)
        if invocation is None:
            return None
        is_launched = tool.kind == "launcher"
        argv0 = argv[len(argv) - len(words) - 1] if is_launched else argv[0]
        cwd = self._string(self._cwd[row])
        binary = self.binary(row)
        return Command(row, compiler, binary, cwd, invocation, outer, is_launched, argv0, stages)

    def _recovered(
        self,
        row: int,
        tool: Tool,
        own: Invocation | None,
        stages: Sequence[int],
        missing: tuple[bytes, ...],
    ) -> Invocation | None:
        """Return what a command did whose response files are gone, as its stages show it."""
        written = self._written_below(row)
        parts = [self._stage(each, written) for each in (*stages, *self._linkers(row))]
        found, is_known = recover(tool, own, parts)
        if not is_known:
            self.unread[row] = missing
        return found

    def _stage(self, row: int, written: Collection[bytes]) -> Stage:
        tool = self._tool(row) or self._tools[LINKER_TOOL]
        cwd = self._string(self._cwd[row])
        expanded = self._expanded(row, self.argv(row), tool)
        words = expanded.argv[1:]
        made = [word for word in words if self._join(cwd, word) in written]
        return Stage(tool, words, not expanded.missing, made)

    def _written_below(self, row: int) -> set[bytes]:
        """Return what an execution and all below it opened for writing, as given."""
        opens = self._image["opens"]
        found = set()
        for each in self._tree.below(row):
            for at in self._image["executions"].span("opens.start", each):
                if opens["mode"][at] & WRITTEN:
                    found.add(self._image.string(opens["original"][at]))
        return found

    def _linkers(self, row: int) -> Iterator[int]:
        """Give the runs of collect2 that a driver started; it gets the linker's arguments."""
        for child in self._tree.children(row):
            for each in self._tree.rest_of_process(child):
                if self.binary(each).rpartition(b"/")[2] == COLLECT2:
                    yield each

    def arguments(self, command: Command) -> list[Argument]:
        """Return what the words of a command mean that runs its compiler itself."""
        argv = self._expanded(command.row, self.argv(command.row), command.tool).argv
        return command.tool.options.parse(argv[1:])

    def binary(self, row: int) -> bytes:
        """Return the path of what was executed, empty when that is not known."""
        number = self._binary[row]
        return self._image.path_string(number) if number >= 0 else b""

    def _expanded(self, row: int, argv: Sequence[bytes], tool: Tool) -> Expanded:
        cwd = self._string(self._cwd[row])
        return self._response_files.expand(argv, cwd, self._tree.upid[row], tool=tool)

    def argv(self, row: int) -> Sequence[bytes]:
        """Return the arguments of what an execution runs."""
        tool = self._own_tool(row)
        is_runner = tool is not None and tool.kind == RUNNER
        return self._running(row).argv if is_runner else self._recorded(row)

    def _recorded(self, row: int) -> Sequence[bytes]:
        numbers = self._arguments[self._argv[row] : self._argv[row + 1]].tolist()
        return [self._string(number) for number in numbers]

    def _string(self, number: int) -> bytes:
        text = self._strings.get(number)
        if text is None:
            text = self._strings[number] = self._image.string(number)
        return text
