# SPDX-License-Identifier: Apache-2.0
"""Executions -> those that ran a compiler or its launcher, with what their argv asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from libetrace.image import Image

from etrace.compilers import response, tools
from etrace.compilers.invocation import Invocation, read_invocation, select_tool
from etrace.compilers.options import Argument
from etrace.compilers.tools import Tool
from etrace.postprocess.config import Config
from etrace.postprocess.process_tree import ProcessTree

#: what runs only in the service of a driver, and is no compilation when one was seen
STAGE = "stage"
#: a stage that is counted instead of its driver
FRONTEND = "frontend"


@dataclass(frozen=True, slots=True)
class Command:
    """One execution that could be a compilation.

    `outer` is the row of the compiler or launcher that started it, -1 without one. `binary` is what
    was executed, `argv0` the compiler's name as given: of a launcher they are two programs.
    """

    row: int
    tool: Tool
    binary: bytes
    cwd: bytes
    invocation: Invocation
    outer: int
    is_launched: bool
    argv0: bytes


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
        self._tools = tools.load()
        self._known: dict[tuple[int, int], Tool | None] = {}
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
        found: dict[int, Command] = {}
        for row, tool in compilers.items():
            outer = self._outer(row, compilers)
            if tool.settings.get("role") == STAGE and outer >= 0:
                continue
            command = self._command(row, tool, outer)
            if command is not None:
                found[row] = command
        return found

    def _compilers(self) -> Iterator[tuple[int, Tool]]:
        for row, index in enumerate(self._tree.index):
            tool = self._tool(row) if index > 0 else None
            if tool is not None and tool.kind in ("compiler", "launcher"):
                yield row, tool

    def _tool(self, row: int) -> Tool | None:
        """Identify what an execution ran, by its binary and argv[0]; each pair once."""
        start, end = self._argv[row], self._argv[row + 1]
        key = (self._binary[row], self._arguments[start] if start < end else -1)
        if key not in self._known:
            binary = self._image.path_string(key[0]) if key[0] >= 0 else b""
            argv0 = self._string(key[1]) if key[1] >= 0 else b""
            self._known[key] = self._tools.identify(binary, argv0) or self._by_config(binary)
        return self._known[key]

    def _by_config(self, binary: bytes) -> Tool | None:
        text = binary.decode("utf-8", "surrogateescape")
        return next((tool for glob, tool in self._configured if fnmatchcase(text, glob)), None)

    def _outer(self, row: int, compilers: dict[int, Tool]) -> int:
        """Return the compiler or launcher that became this execution, or else forked it."""
        if self._tree.index[row] > 1 and row - 1 in compilers:
            return row - 1
        parent: int = self._tree.parent[row]
        return parent if parent in compilers else -1

    def _command(self, row: int, tool: Tool, outer: int) -> Command | None:
        argv = self._argv_of(row)
        cwd = self._string(self._cwd[row])
        selected = select_tool(self._tools, tool, argv)
        if selected is None:
            return None
        compiler, words = selected
        invocation = read_invocation(compiler, response.expand((b"", *words), cwd).argv[1:])
        if invocation is None:
            return None
        is_launched = tool.kind == "launcher"
        argv0 = argv[len(argv) - len(words) - 1] if is_launched else argv[0]
        binary = self._image.path_string(self._binary[row]) if self._binary[row] >= 0 else b""
        return Command(row, compiler, binary, cwd, invocation, outer, is_launched, argv0)

    def arguments(self, command: Command) -> list[Argument]:
        """Return what the words of a command mean that runs its compiler itself."""
        argv = response.expand(self._argv_of(command.row), command.cwd).argv
        return command.tool.options.parse(argv[1:])

    def _argv_of(self, row: int) -> Sequence[bytes]:
        numbers = self._arguments[self._argv[row] : self._argv[row + 1]].tolist()
        return [self._string(number) for number in numbers]

    def _string(self, number: int) -> bytes:
        text = self._strings.get(number)
        if text is None:
            text = self._strings[number] = self._image.string(number)
        return text
