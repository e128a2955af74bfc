# SPDX-License-Identifier: Apache-2.0
"""Executions -> names that a person understands: `cc1 lvm.c`, `ld lua`, `make all`.

A name is the program and what it works on. For a compiler that is the source, or the output when
the source is a temporary file; for a linker or an archiver the output; for a shell its script or
command; for make its targets; for programs that copy the destination; else the first word that is
not an option. etrace/compilers/*.toml say what the options of a compiler are. A response file
counts as the words in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property

from libetrace.image.file import Image

from etrace.compilers import ar
from etrace.compilers.invocation import STDIN, select_tool
from etrace.compilers.options import INPUT, values
from etrace.compilers.response import ResponseFiles
from etrace.compilers.tools import Tool, Tools, load
from etrace.postprocess.compilations.traced_files import response_files
from etrace.query.rows.commands import COPIERS, nearest_commands
from etrace.spec.database import NONE

SHELLS = frozenset(b"sh bash dash ksh mksh zsh ash".split())
MAKES = frozenset(b"make gmake ninja samu".split())
#: options of make and ninja that take the next word; -j and -l do when it is a number
MAKE_VALUES = frozenset(b"-C -f -I -o -W -t --directory --file".split())
#: between gcc and ld, with the words of ld
LINKERS_DRIVER = b"collect2"
#: compilers put their own files right into these, while projects have a directory there
TEMPORARY = (b"/tmp", b"/var/tmp")
MAX_WORDS = 40
#: between a linker and the command that a person gave: collect2, gcc, ccache
MAX_DRIVERS = 4
PID_MASK = (1 << 22) - 1


class _Strings(dict[int, bytes]):
    """Strings of an image by row, each read once."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._read = image.string

    def __missing__(self, row: int) -> bytes:
        text = self[row] = self._read(row)
        return text


class Labels:
    """Names the executions of one image."""

    def __init__(
        self, image: Image, words: Callable[[Sequence[bytes]], list[bytes]] | None = None
    ) -> None:
        """With `words` arguments are what it makes of them: names show no more than these."""
        self._image, self._tools, self._shown = image, load(), words
        executions = image["executions"]
        self._executions, self._binary = executions, executions["binary"]
        self._argv, self._argv_start = image["arguments"]["string"], executions["argv.start"]
        self._paths = image["paths"]["string"]
        self._programs: dict[int, bytes] = {}
        self._words = _Strings(image)
        self._names: dict[tuple[int, bytes] | int, str] = {}

    def of(self, row: int) -> str:
        """Return the name of an execution; before its first exec `sh (forked)`."""
        if self._binary[row] == NONE:
            return self._forked(row)
        key: tuple[int, bytes] | int = self.command(row)
        name = self._names.get(key) or self._names.get(row)
        if name is None:
            argv = self.arguments(row)
            has_file = any(word.startswith(b"@") for word in argv[1:])
            key = row if has_file else key  # files of one name may hold other words
            name = self._names[key] = self._name(row, self._expanded(row) if has_file else argv)
        return name

    def command(self, row: int) -> tuple[int, bytes]:
        """Return what is equal for executions of one program with equal arguments."""
        strings = self._argv[self._argv_start[row] : self._argv_start[row + 1]]
        return self._binary[row], strings.tobytes()

    def _name(self, row: int, argv: Sequence[bytes]) -> str:
        path = self._words[self._paths[self._binary[row]]]
        words = (self._program(row), subject(self._tools, path, argv))
        return os.fsdecode(b" ".join(filter(None, words)))

    def _expanded(self, row: int) -> Sequence[bytes]:
        """Return the arguments with what response files held; without it, what was linked."""
        words, executions = self._words, self._executions
        strings = self._argv[self._argv_start[row] : self._argv_start[row + 1]]
        argv = [words[string] for string in strings]
        path = words[self._paths[self._binary[row]]]
        if self._tools.identify(path, argv[0]) is None and not path.endswith(LINKERS_DRIVER):
            return self.arguments(row)
        cwd, upid = words[executions["cwd"][row]], executions["upid"][row]
        found = self._responses.expand(argv, cwd, upid)
        argv = list(found.argv)
        if found.missing and row in self._linked:
            argv += [b"-o", self._image.path_string(self._linked[row])]
        elif len(argv) < 2:
            return self.arguments(row)
        return argv if self._shown is None else self._shown(argv)

    @cached_property
    def _responses(self) -> ResponseFiles:
        return response_files(self._image, reads_disk=False)

    @cached_property
    def _linked(self) -> dict[int, int]:
        """The linked module of a linker and of the driver above it, by execution."""
        found: dict[int, int] = {}
        if "linked" not in self._image.tables:
            return found
        table, parent = self._image["linked"], self._executions["parent"]
        for row, path in zip(table["execution"], table["path"], strict=True):
            at = row
            for _ in range(MAX_DRIVERS):
                found.setdefault(at, path)
                at = parent[at]
                if at == NONE or not self._is_driver(at):
                    break
        return found

    def _is_driver(self, row: int) -> bool:
        if self._binary[row] == NONE:
            return False
        program = self._words[self._paths[self._binary[row]]]
        tool = self._tools.identify(program, program)
        return program.endswith(LINKERS_DRIVER) or (tool is not None and tool.kind == "compiler")

    def program(self, row: int) -> str:
        """Return the name of the program alone: `cc1`; before its first exec the parent's."""
        at = self._nearest[row]
        return "" if at == NONE else os.fsdecode(self._program(at))

    @cached_property
    def _nearest(self) -> list[int]:
        return nearest_commands(self._executions)

    def _forked(self, row: int) -> str:
        name = self.program(row)
        upid: int = self._executions["upid"][row]
        return f"{name} (forked)" if name else f"process {upid & PID_MASK}"

    def _program(self, row: int) -> bytes:
        binary = self._binary[row]
        if binary not in self._programs:
            self._programs[binary] = self._image.path_string(binary).rpartition(b"/")[2]
        return self._programs[binary]

    def arguments(self, row: int) -> list[bytes]:
        """Return the arguments of an execution; equal ones are one object."""
        strings = self._argv[self._argv_start[row] : self._argv_start[row + 1]]
        words = self._words
        found = [words[string] for string in strings]
        return found if self._shown is None else self._shown(found)


def subject(tools: Tools, path: bytes, argv: Sequence[bytes]) -> bytes:
    """Return what the program at `path` works on; empty when its words do not show it."""
    if not argv:
        return b""
    program = path.rpartition(b"/")[2]
    tool, _, ran = tools.running(path, argv)
    if program == LINKERS_DRIVER:
        tool = tools["ld"]
    if tool is not None:
        return _work_of_tool(tools, tool, ran)
    if program in SHELLS:
        return _script(argv[1:])
    if program in MAKES:
        return _clipped(b" ".join(_targets(argv[1:])))
    words = [word for word in argv[1:] if word and not word.startswith(b"-")]
    if not words:
        return _clipped(b" ".join(argv[1:2]))
    return _name(words[-1] if program in COPIERS else words[0])


def _work_of_tool(tools: Tools, tool: Tool, argv: Sequence[bytes]) -> bytes:
    """Return what a compiler, linker or archiver works on."""
    own, rest = select_tool(tools, tool, argv) or (tool, argv[1:])
    if own.kind == "archiver" and own.settings.get("style") == "ar":
        archives = [w for w in ar.parse(argv, own.options).operands if w.endswith(b".a")]
        return _name(archives[0]) if archives else _first(rest)
    arguments = own.options.parse(rest)
    outputs = values(arguments, "output")
    if own.kind == "compiler":
        inputs = values(arguments, "source") or values(arguments, INPUT)
        sources = [word for word in inputs if _is_source(own, word)]
        if sources:
            more = b" +%d" % (len(sources) - 1) if len(sources) > 1 else b""
            return _name(sources[0]) + more
    if outputs:
        return _name(outputs[-1])
    return _first(rest)


def _is_source(tool: Tool, word: bytes) -> bool:
    if word == STDIN or word.rpartition(b"/")[0] in TEMPORARY:
        return False
    dot = word.rfind(b".")
    return (dot >= 0 and word[dot + 1 :] in _extensions(tool)) or bool(
        tool.settings.get("takes_all")
    )


@cache
def _extensions(tool: Tool) -> frozenset[bytes]:
    """Return the extensions of a compiler's sources."""
    languages = tool.settings.get("languages", {}).values()
    return frozenset(extension.encode() for each in languages for extension in each)


def _script(words: Sequence[bytes]) -> bytes:
    """Return what a shell runs: its script, or `-c` and the command."""
    for at, word in enumerate(words):
        if word.startswith(b"-") and not word.startswith(b"--") and word.endswith(b"c"):
            after = at + 1 + (words[at + 1 : at + 2] == [b"--"])  # so system() of glibc 2.41 does
            return b"-c " + _clipped(b" ".join(words[after : after + 1]))
        if not word.startswith((b"-", b"+")):
            return _name(word)
    return b""


def _targets(words: Sequence[bytes]) -> list[bytes]:
    """Return the targets that make or ninja was asked for."""
    rest, found = iter(words), []
    for word in rest:
        if word in MAKE_VALUES:
            next(rest, None)
        elif not word.startswith(b"-") and b"=" not in word and not word.isdigit():
            found.append(word)
    return found


def _first(words: Sequence[bytes]) -> bytes:
    return _name(words[0]) if words else b""


def _name(word: bytes) -> bytes:
    """Return the last part of a path, on one line."""
    return _clipped(word.rstrip(b"/").rpartition(b"/")[2])


def _clipped(text: bytes) -> bytes:
    line = b" ".join(text.split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 3] + b"..."
