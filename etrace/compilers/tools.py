# SPDX-License-Identifier: Apache-2.0
"""`etrace/compilers/*.toml` -> the tools that are known, and which of them an execution ran.

A file holds one table a tool (docs/compilations.md):

    [clang]
    extends = "gcc"                 # options and settings of gcc, unless said otherwise here
    kind = "compiler"               # compiler, linker, archiver, launcher, runner
    family = "clang"                # tools of one family are one program under several names
    language = "c"
    names = ["clang"]               # not versions and cross prefixes; `*` is any text
    paths = ["*/llvm-*/bin/clang"]  # wildcards over the whole path, for names that say too little
    [clang.options]
    output = ["-o ARG", "-oARG"]    # meaning = forms, see options.py

A user's own files add tools (own.py), and their names win over those of the package. Names and
paths are not inherited. `[cross]` lists how the names of cross compilers begin. All other
keys are `settings`, for who uses the tool:

    role            "driver" counts as the compilation, "stage" does when no driver was seen,
                    "frontend" does instead of its driver
    probe           it can be asked for its include directories
    links           it makes linked modules itself, without a linker
    languages       extensions of sources by language; `dialects` the same for values of -x
    promotes        C sources are C++; `takes_all`: every input is a source; `no_sources`:
                    extensions of inputs that never are
    separate_units  each source is compiled by itself
    default_output  what it makes without -o; `object_suffix`: what it names objects, if not ".o"
    objects         extensions of other objects that it writes; `intermediate`: globs of files that
                    it writes and removes, `temporary` the same in TMPDIR
    first_argument  tool by the first argument, "" for none; `modes` by the last such option
    style           of archivers, see archivers.toml
    response        the form of its response files, see responses.toml
    in_process, operands, argv0_follows  of runners, see launchers.toml
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from etrace.compilers import own
from etrace.compilers.options import INPUT, Options
from etrace.errors import SpecError
from etrace.spec.path_style import is_windows_path, program_name

KINDS = ("compiler", "linker", "archiver", "launcher", "runner")
RUNNER = "runner"
CROSS, RESPONSE = "cross", "response"
#: tables that describe no tool
OTHERS = frozenset((CROSS, RESPONSE))
VERSION = re.compile(rb"-\d+(?:\.\d+)*$")


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool: what it is and how to read its argv. There is one object of each."""

    name: str
    kind: str
    family: str
    language: str
    options: Options = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)


#: (argv, the tool that reads its response files) -> argv with their contents
Expand = Callable[[Sequence[bytes], Tool], Sequence[bytes]]


class Running(NamedTuple):
    """What an execution runs; `binary` and `argv` are the program's, whoever runs it."""

    tool: Tool | None
    binary: bytes
    argv: Sequence[bytes]


class Tools:
    """All tools, to be identified by what an execution ran."""

    def __init__(self, raw: Mapping[str, Any], users: Mapping[str, Any] | None = None) -> None:
        """`raw`: the tables of all files by name; SpecError when they contradict each other.

        `users` are those of the user's own files.
        """
        users = users or {}
        starts = [each for some in (raw, users) for each in some.get(CROSS, {}).get("prefixes", [])]
        self._prefix = _prefix(starts)
        self._own = users.keys()
        for name in (users.keys() & raw.keys()) - OTHERS:
            raise SpecError(f"compilers: {name} is a tool of etrace", "give yours another name")
        self._raw = {name: table for name, table in {**users, **raw}.items() if name not in OTHERS}
        #: forms of response files by name, see responses.toml
        self.responses: Mapping[str, Mapping[str, Any]] = raw.get(RESPONSE, {})
        self._tools = {name: self._tool(name) for name in self._raw}
        self._names: dict[bytes, Tool] = {}
        self._globs: list[tuple[re.Pattern[bytes], Tool]] = []
        self._paths: list[tuple[re.Pattern[bytes], Tool]] = []
        for name, table in self._raw.items():
            self._register(self._tools[name], table)
        self._memo: dict[tuple[bytes, bytes], Tool | None] = {}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def identify(self, binary: bytes, argv0: bytes) -> Tool | None:
        """Return the tool that ran: by the path that was executed, else by argv[0].

        argv[0] also decides between tools of one family: `clang` run as `clang++`, lld as `ld.lld`.
        """
        key = (binary, argv0)
        if key not in self._memo:
            self._memo[key] = self._identify(binary, argv0)
        return self._memo[key]

    def running(
        self, binary: bytes, argv: Sequence[bytes], expand: Expand | None = None
    ) -> Running:
        """Return what an execution runs: the tool, and its own path and arguments.

        A dynamic loader or emulator runs the program that its command line names in its own
        process: that is what ran. Runners that execute it have no tool of their own. `expand` puts
        in the response files that a runner reads itself, as java does.
        """
        tool = self.identify(binary, argv[0] if argv else b"")
        while tool is not None and tool.kind == RUNNER:
            if expand is not None and "response" in tool.settings:
                argv = expand(argv, tool)
            found = self._run_within(tool, argv)
            if found is None:
                return Running(None, binary, argv)
            binary, argv = found
            tool = self.identify(binary, argv[0])
        return Running(tool, binary, argv)

    def _run_within(
        self, runner: Tool, argv: Sequence[bytes]
    ) -> tuple[bytes, Sequence[bytes]] | None:
        """Return the program that runs in a runner's process; None when argv is not its own."""
        is_whole = runner.settings.get("in_process") and argv and self.find_name(argv[0]) is runner
        return self.run_by(runner, argv) if is_whole else None

    def tool_of(
        self, binary: bytes, argv0: bytes, argv: Callable[[], Sequence[bytes]]
    ) -> Tool | None:
        """Return the tool of `running`; `argv` is only called for runners."""
        tool = self.identify(binary, argv0)
        is_runner = tool is not None and tool.kind == RUNNER
        return self.running(binary, argv()).tool if is_runner else tool

    def run_by(self, runner: Tool, argv: Sequence[bytes]) -> tuple[bytes, Sequence[bytes]] | None:
        """Return the program that a runner runs, and the program's arguments; None without one."""
        name, n_before = b"", runner.settings.get("operands", 0)
        for places, argument in runner.options.located(argv[1:]):
            if argument.meaning == "argv0":
                name = argument.value
            elif argument.meaning == "query":
                return None
            elif argument.meaning == "program":
                program, at = argument.value, places[-1]
                break
            elif argument.meaning == INPUT and not (
                (runner.settings.get("assignments") or runner.kind == "launcher")
                and b"=" in argument.value
            ):
                program, at = argument.value, places[-1]
                if n_before == 0:
                    break
                n_before -= 1
        else:
            return None
        rest = argv[at + 2 :]
        if runner.settings.get("argv0_follows"):
            name, rest = (rest[0] if rest else b""), rest[1:]
        return program, [name or program, *rest]

    def _identify(self, binary: bytes, argv0: bytes) -> Tool | None:
        by_binary, by_argv0 = self._find(binary), self._find(argv0)
        if by_binary is None and by_argv0 is None:  # a link of a name of its own?
            is_here = binary and not is_windows_path(binary)
            return self._find(os.path.realpath(binary)) if is_here else None
        if by_binary is None or (
            # an applet of busybox by its name, or what a dynamic loader has handed on (preload)
            by_argv0 is not None and by_binary.kind == RUNNER and by_argv0.kind != RUNNER
        ):
            return by_argv0
        if by_argv0 is not None and by_argv0.family == by_binary.family:
            return by_argv0
        return by_binary

    def _find(self, path: bytes) -> Tool | None:
        shown = path.replace(b"\\", b"/").lower() if is_windows_path(path) else path
        for pattern, tool in self._paths:
            if pattern.match(shown):
                return tool
        return self.find_name(path)

    def find_name(self, path: bytes) -> Tool | None:
        """Return the tool with the name of a file, wherever it lies."""
        name = program_name(path)
        unversioned = VERSION.sub(b"", name)
        for text in (name, unversioned, self._uncrossed(name), self._uncrossed(unversioned)):
            if text in self._names:
                return self._names[text]
        return next((tool for pattern, tool in self._globs if pattern.match(name)), None)

    def _uncrossed(self, name: bytes) -> bytes:
        """Return the name without the longest prefix that leaves a known one."""
        match = self._prefix.match(name)
        end = match.end() if match else 0
        while end > 0 and name[end:] not in self._names:
            end = name.rfind(b"-", 0, end - 1) + 1
        return name[end:] if end > 0 else name

    # ---- reading ----

    def _tool(self, name: str) -> Tool:
        table, forms = self._inherited(name, ())
        if table.get("kind") not in KINDS:
            raise SpecError(
                f"compilers: {name}: kind is not one of {', '.join(KINDS)}",
                'give it a kind, or let it extend another: extends = "gcc"',
            )
        known = {key: table.pop(key, "") for key in ("kind", "family", "language")}
        known["family"] = known["family"] or name
        return Tool(name, **known, options=Options(forms), settings=table)

    def _inherited(
        self, name: str, below: tuple[str, ...]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        if name in below or name not in self._raw:
            raise SpecError(f"compilers: {' extends '.join((*below, name))}: no such tool")
        own = dict(self._raw[name])
        for key in ("names", "paths"):
            own.pop(key, None)
        base = own.pop("extends", None)
        table, forms = self._inherited(base, (*below, name)) if base else ({}, {})
        for meaning, listed in own.pop("options", {}).items():
            forms.update(dict.fromkeys(listed, meaning))
        return table | own, forms

    def _register(self, tool: Tool, table: Mapping[str, Any]) -> None:
        for text in table.get("names", ()):
            if "*" in text:
                self._globs.append((re.compile(translate(text).encode()), tool))
                continue
            other = self._names.setdefault(text.encode(), tool)
            is_own = other.name in self._own and tool.name not in self._own
            if other is not tool and not is_own:
                raise SpecError(f"compilers: {text} is both {other.name} and {tool.name}")
        for wildcard in table.get("paths", ()):
            self._paths.append((re.compile(translate(wildcard).encode()), tool))


def _prefix(starts: list[str]) -> re.Pattern[bytes]:
    try:
        return re.compile(rb"(?:%s)[\w.]*-(?:[\w.]+-)*" % "|".join(starts).encode())
    except re.error as error:
        raise SpecError(f"compilers: {CROSS}.prefixes: {error}") from error


def tables() -> dict[str, Any]:
    """Return the tables of the package by name. SpecError when two have one name."""
    raw: dict[str, Any] = {}
    for file in sorted(Path(__file__).parent.glob("*.toml")):
        found = tomllib.loads(file.read_text())
        for name in found.keys() & raw.keys():
            raise SpecError(f"compilers: {file.name}: {name} is also in another file")
        raw |= found
    return raw


@cache
def load() -> Tools:
    """Read every file of the package and of the user, once. SpecError when one is wrong."""
    return Tools(tables(), own.tables())
