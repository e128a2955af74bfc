# SPDX-License-Identifier: Apache-2.0
"""Executions of a database -> the command lines that stand for them, as a user would write them.

A stage that a driver started has the driver's command, a launcher's is the one that it
launches, and response files are expanded by what they held. Paths are written in one of several
styles.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.invocation import select_tool, without_launchers
from etrace.compilers.tools import Running, Tool
from etrace.nfsdb.owned import is_own
from etrace.postprocess.compilations.traced_files import TracedFiles, response_files
from etrace.spec.database import NONE
from etrace.spec.path_style import style_of

#: of gcc; it starts the linker
COLLECT2 = b"/collect2"
#: kinds of tools that start a linker or archiver
STARTERS = ("compiler", "launcher", "linker", "archiver")  # gcc-ar starts ar


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the row of its execution, its directory, its arguments.

    `tool` reads the words from `first` on: those after the name of the compiler.
    """

    execution: int
    cwd: bytes
    argv: Sequence[bytes]
    tool: Tool
    first: int

    @property
    def words(self) -> Sequence[bytes]:
        """The arguments that the tool reads."""
        return self.argv[self.first :]

    def with_words(self, words: Sequence[bytes]) -> Command:
        """Return the same command with other words."""
        return replace(self, argv=[*self.argv[: self.first], *words])


class Commands:
    """The commands of one image."""

    def __init__(self, image: Image, *, expands: bool = True) -> None:
        """With `expands`, response files are replaced by their content."""
        self.image, self._expands = image, expands
        self._tools, self._executions = tools.load(), image["executions"]
        self._files = response_files(image, reads_disk=is_own(image))

    @cached_property
    def files(self) -> TracedFiles:
        """Resolves paths; made when it is first needed."""
        return TracedFiles(self.image)

    def of_compilation(self, row: int) -> Command:
        """Return the command that stands for a row of `compilations`."""
        table = self.image["compilations"]
        execution = table["execution"][row]
        if table["is_child"][row]:
            execution = self._executions["parent"][execution]
        return self._command(self._outermost(execution, self._is_launcher))

    def is_done_elsewhere(self, row: int) -> bool:
        """Whether a launcher had the source compiled by a server that this build did not start.

        Then what was compiled is known by its command alone. It ended well.
        """
        execution = self.image["compilations"]["execution"][row]
        status = self._executions["status"][execution]
        return self._is_launcher(execution) and status in (0, NONE)

    def of_link(self, execution: int) -> Command:
        """Return the command that made the linker or archiver run, or its own."""
        return self._command(self._outermost(execution, self._is_starter))

    def _outermost(self, execution: int, is_in: Callable[[int], bool]) -> int:
        seen = {execution}  # a damaged database may contain a cycle
        while (outer := self._outer(execution)) not in seen and is_in(outer):
            seen.add(outer)
            execution = outer
        return execution

    def _outer(self, row: int) -> int:
        """Return the execution that became this one, or else forked it."""
        if self._executions["index"][row] > 1:
            return row - 1
        return int(self._executions["parent"][row])

    def _is_launcher(self, row: int) -> bool:
        return bool(self._launched(row))

    def _is_starter(self, row: int) -> bool:
        if row == NONE or self._executions["binary"][row] == NONE:
            return False
        tool = self._running(row).tool
        if tool is None:
            return self._binary(row).endswith(COLLECT2)
        return tool.kind in STARTERS and (tool.kind != "launcher" or self._is_launcher(row))

    def _command(self, execution: int) -> Command:
        launched = self._launched(execution)
        tool, _, asked = self._running(execution)
        argv = launched or asked
        if launched:
            tool = self._tools.find_name(argv[0])
        cwd = self.image.string(self._executions["cwd"][execution])
        if self._expands:
            argv = self._expanded(execution, argv, tool)
        # programs that only .bas_config knows are read as gcc is
        selected = select_tool(self._tools, tool or self._tools["gcc"], argv)
        compiler, words = selected or (self._tools["gcc"], argv[1:])
        return Command(execution, cwd, argv, compiler, len(argv) - len(words))

    def _running(self, row: int) -> Running:
        return self._tools.running(
            self._binary(row), self._asked(row), lambda argv, tool: self._expanded(row, argv, tool)
        )

    def _expanded(self, row: int, argv: Sequence[bytes], tool: Tool | None) -> Sequence[bytes]:
        upid, cwd = self._executions["upid"][row], self._executions["cwd"][row]
        directory = self.image.string(cwd)
        return self._files.expand(argv, directory, upid, tool=tool, keeps_missing=True).argv

    def _binary(self, row: int) -> bytes:
        binary = self._executions["binary"][row]
        return b"" if binary == NONE else self.image.path_string(binary)

    def _asked(self, row: int) -> Sequence[bytes]:
        arguments = self.image["arguments"]["string"]
        span = self._executions.span("argv.start", row)
        return [self.image.string(arguments[i]) for i in span]

    def _launched(self, row: int) -> Sequence[bytes]:
        """Return the command that a launcher runs; empty for other programs."""
        if row == NONE or self._executions["binary"][row] == NONE:
            return ()
        tool, _, argv = self._running(row)
        if tool is None or tool.kind != "launcher":
            return ()
        return without_launchers(self._tools, tool, argv)


PARENT = b".."


class PathStyle(enum.StrEnum):
    """How paths are written; all are of the file that the command named."""

    AS_IS = "as-is"  #: as the command gives them
    ABSOLUTE = "absolute"  #: that, made absolute
    RELATIVE = "relative"  #: to `directory`
    CANONICAL = "canonical"  #: symbolic links resolved, as the trace shows them


class Paths:
    """Writes paths in one style. Those of an image are canonical."""

    def __init__(self, commands: Commands, style: PathStyle) -> None:
        self._commands, self._style = commands, style
        self._form = style_of(commands.image.attributes)

    def shown(self, command: Command, name: bytes | None, canonical: bytes) -> bytes:
        """Return the path of a file that a command calls `name`; None when it does not name it."""
        if self._style is PathStyle.CANONICAL:
            return canonical
        if self._style is PathStyle.AS_IS and name is not None:
            return name
        path = canonical if name is None else self._absolute(command.cwd, name, canonical)
        if self._style is PathStyle.RELATIVE and path.startswith(b"/"):
            return os.path.relpath(path, command.cwd)
        return path

    def named(self, command: Command, names: Iterable[bytes], canonical: bytes) -> bytes | None:
        """Return that of some names which is a file, None when none is."""
        basename = self._form.basename
        alike = [name for name in names if basename(name) == basename(canonical)]
        return next((name for name in alike if self.is_file(command, name, canonical)), None)

    def is_file(self, command: Command, name: bytes, canonical: bytes) -> bool:
        """Return whether a name of a command is that of a file."""
        path = self._form.join(command.cwd, name)
        return path == canonical or self._commands.files.resolve(path) == canonical

    def _absolute(self, cwd: bytes, name: bytes, canonical: bytes) -> bytes:
        path = self._form.normpath(self._form.join(cwd, name))
        if self._form.is_windows or PARENT not in name.split(b"/"):
            return path
        # a directory before .. may be a symbolic link
        return path if self._commands.files.resolve(path) == canonical else canonical
