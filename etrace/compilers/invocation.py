# SPDX-License-Identifier: Apache-2.0
"""A compiler's argv -> what it compiles, how and where to (nothing is run or read).

Facts: `etrace/compilers/*.toml`; what the options mean: GCC's manual, "Invoking GCC" and "The C
Preprocessor", and the Clang command line reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import NamedTuple

from etrace.compilers.options import INPUT, Argument
from etrace.compilers.tools import RUNNER, Tool, Tools

STDIN = b"-"
ASSEMBLER = "assembler"
SYSROOT_MARKS = (b"=", b"$SYSROOT")


class Step(Enum):
    """The last step that the compiler takes."""

    OBJECT = "-c"
    ASSEMBLY = "-S"
    CHECK = "-fsyntax-only"
    LINK = ""


class Source(NamedTuple):
    """An input to compile, as it was given; `-` is the standard input."""

    name: bytes
    language: str


class Definition(NamedTuple):
    """-D or -U: `value` is `1` when -D gives none, and empty of -U."""

    name: bytes
    value: bytes
    is_undef: bool


@dataclass(slots=True)
class Invocation:
    """What one command line asks of a compiler; files and directories as they were given.

    `internal` are directories that a driver handed to its stage, `target` the options that change
    which directories the compiler searches by itself. `language` is C++ when any source is, else
    that of the first one that is not assembler.
    """

    tool: Tool
    sources: list[Source] = field(default_factory=list)
    step: Step = Step.LINK
    outputs: list[bytes] = field(default_factory=list)
    quote: list[bytes] = field(default_factory=list)
    include: list[bytes] = field(default_factory=list)
    system: list[bytes] = field(default_factory=list)
    internal: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)
    target: list[bytes] = field(default_factory=list)
    sysroot: bytes = b""
    is_standard: bool = True

    language: str = ""


def read_invocation(tool: Tool, argv: Sequence[bytes]) -> Invocation | None:
    """Return what `argv`, without the program's name, compiles; None when it compiles nothing.

    Preprocessing alone, questions (`--version`) and linking compile nothing.
    """
    reader = _Reader(tool)
    it = reader.it
    for argument in tool.options.parse(argv):
        meaning = argument.meaning
        if not meaning:
            continue
        if meaning == "rest":  # the linker's
            break
        if meaning in _LISTS:
            getattr(it, _LISTS[meaning]).append(argument.value)
        elif meaning in _NOTHING:
            return None
        elif meaning in _ACTIONS:
            _ACTIONS[meaning](reader, argument)
    it.sources = reader.primary or reader.of_one_language() or it.sources
    if not it.sources:
        return None
    it.language = _common_language([source.language for source in it.sources])
    _root_directories(it)
    _name_objects(it)
    return it


class _Reader:
    """What has to be remembered between arguments."""

    __slots__ = ("dialect", "extensions", "inputs", "it", "language", "prefix", "primary")

    def __init__(self, tool: Tool) -> None:
        self.it = Invocation(tool)
        self.extensions = _extensions(tool)
        self.dialect: str | None = None  # by -x, empty: nothing that is compiled
        self.prefix = b""
        self.primary: list[Source] = []  # inputs that the command line itself calls sources
        self.language = ""  # of all inputs
        self.inputs: list[Source] = []  # all, without a language when their option names none

    def add_input(self, argument: Argument) -> None:
        """Take an input as a source when -x, its extension or the tool says so."""
        name = argument.value
        self.inputs.append(Source(name, ""))
        language = self.dialect
        if language is None:
            stem, dot, extension = name.rpartition(b".")
            language = self.extensions.get(extension) if dot and stem[-1:] != b"/" else None
        if language is None and self.it.tool.settings.get("takes_all"):
            language = self.it.tool.language
        if language:
            self.it.sources.append(Source(name, language))

    def add_primary(self, argument: Argument) -> None:
        self.primary.append(Source(argument.value, self.it.tool.language))

    def add_of_language(self, argument: Argument) -> None:
        """Take an input as a source of the language that its own option names."""
        source = Source(argument.value, argument.meaning.removeprefix("source-"))
        self.inputs.append(source)
        self.it.sources.append(source)

    def set_language(self, argument: Argument) -> None:
        self.language = argument.meaning.removeprefix("all-")

    def of_one_language(self) -> list[Source]:
        """Return the inputs when an option gives all of them a language; objects have none."""
        if not self.language:
            return []
        settings = self.it.tool.settings
        others = tuple(f".{each}".encode() for each in settings.get("no_sources", ()))
        return [
            Source(name, language or self.language)
            for name, language in self.inputs
            if language or not (name.lower().endswith(others) or _is_option(name))
        ]

    def set_dialect(self, argument: Argument) -> None:
        """Follow -x: `none` gives the choice back to the extension."""
        known = self.it.tool.settings.get("dialects", {})
        value = argument.value.decode("ascii", "replace")
        self.dialect = None if value == "none" else known.get(value, "")

    def set_step(self, argument: Argument) -> None:
        """Stop earlier: -S wins over -c, and -fsyntax-only over both."""
        step = _STEPS[argument.meaning]
        if _ORDER.index(step) < _ORDER.index(self.it.step):
            self.it.step = step

    def define(self, argument: Argument) -> None:
        name, equals, value = argument.value.partition(b"=")
        self.it.definitions.append(Definition(name, value if equals else b"1", False))

    def undefine(self, argument: Argument) -> None:
        self.it.definitions.append(Definition(argument.value, b"", True))

    def set_prefix(self, argument: Argument) -> None:
        self.prefix = argument.value

    def add_with_prefix(self, argument: Argument) -> None:
        """-iwithprefix; without -iprefix it is a place that only the compiler knows."""
        if self.prefix:
            is_before = argument.meaning == "include-with-prefix-before"
            directories = self.it.include if is_before else self.it.after
            directories.append(self.prefix + argument.value)

    def add_with_sysroot(self, argument: Argument) -> None:
        """-iwithsysroot: an absolute path is in the sysroot."""
        mark = SYSROOT_MARKS[0] if argument.value.startswith(b"/") else b""
        self.it.system.append(mark + argument.value)

    def set_sysroot(self, argument: Argument) -> None:
        """--sysroot, and -isysroot, which wins for headers."""
        is_header = argument.meaning == "header-sysroot"
        if is_header or not self.it.sysroot:
            self.it.sysroot = argument.value
        words = [b"-isysroot", argument.value] if is_header else [b"--sysroot=" + argument.value]
        self.it.target += words

    def drop_standard(self, _argument: Argument) -> None:
        self.it.is_standard = False

    def add_target(self, argument: Argument) -> None:
        flag, value = argument.flag, argument.value
        words = [flag + value] if flag.endswith(b"=") else [flag, value] if value else [flag]
        self.it.target += words

    def hand_on(self, argument: Argument) -> None:
        """Read what -Wp, hands to the preprocessor; its -MD takes a file."""
        words = iter(argument.value.split(b","))
        for word in words:
            if word in (b"-MD", b"-MMD", b"-MF", b"-MT", b"-MQ"):
                next(words, None)
                continue
            self.hand_on_one(Argument("", b"", word))

    def hand_on_one(self, argument: Argument) -> None:
        """-Xpreprocessor WORD."""
        for each in self.it.tool.options.parse([argument.value]):
            if each.meaning in _HANDED_ON:
                _ACTIONS[each.meaning](self, each)


@cache
def _extensions(tool: Tool) -> dict[bytes, str]:
    """Return language by extension; g++ takes C for C++."""
    promoted = {"c": "c++"} if tool.settings.get("promotes") else {}
    return {
        extension.encode(): promoted.get(language, language)
        for language, extensions in tool.settings.get("languages", {}).items()
        for extension in extensions
    }


def _common_language(languages: list[str]) -> str:
    if "c++" in languages:
        return "c++"
    return next((each for each in languages if each != ASSEMBLER), languages[0])


def _root_directories(it: Invocation) -> None:
    """Put the sysroot before directories that ask for it."""
    for directories in (it.quote, it.include, it.system, it.after):
        for at, directory in enumerate(directories):
            for mark in SYSROOT_MARKS:
                if directory.startswith(mark):
                    directories[at] = it.sysroot + directory[len(mark) :]


def _is_option(word: bytes) -> bool:
    """Return whether a word that no table knows is an option, `/nologo`, and no absolute path."""
    return word.startswith(b"/") and word.count(b"/") == 1


def _name_objects(it: Invocation) -> None:
    """Name the objects of a compiler that adds to their names: a source's name, its own suffix."""
    suffix = it.tool.settings.get("object_suffix", "").encode()
    if not suffix:
        return
    named = []
    for output in it.outputs:
        if output.endswith((b"/", b"\\")):
            stems = (_BEFORE_NAME.sub(b"", source.name) for source in it.sources)
            named += [output + (stem.rpartition(b".")[0] or stem) + suffix for stem in stems]
        elif it.step is Step.OBJECT and b"." not in _BEFORE_NAME.sub(b"", output):
            named.append(output + suffix)
        else:
            named.append(output)
    it.outputs = named


#: of a file's path, with either slash
_BEFORE_NAME = re.compile(rb".*[/\\:]", re.DOTALL)
_ORDER = (Step.CHECK, Step.ASSEMBLY, Step.OBJECT, Step.LINK)
_STEPS = {"compile": Step.OBJECT, "assemble": Step.ASSEMBLY, "check": Step.CHECK}
_NOTHING = frozenset(("preprocess", "query"))
_LISTS = {
    "output": "outputs",
    "include-quote": "quote",
    "include": "include",
    "include-system": "system",
    "include-internal": "internal",
    "include-after": "after",
    "header": "headers",
    "macros": "headers",
}
_ACTIONS: dict[str, Callable[[_Reader, Argument], None]] = {
    INPUT: _Reader.add_input,
    "source": _Reader.add_primary,
    "source-c": _Reader.add_of_language,
    "source-c++": _Reader.add_of_language,
    "all-c": _Reader.set_language,
    "all-c++": _Reader.set_language,
    "language": _Reader.set_dialect,
    "define": _Reader.define,
    "undefine": _Reader.undefine,
    "include-prefix": _Reader.set_prefix,
    "include-with-prefix": _Reader.add_with_prefix,
    "include-with-prefix-before": _Reader.add_with_prefix,
    "include-with-sysroot": _Reader.add_with_sysroot,
    "sysroot": _Reader.set_sysroot,
    "header-sysroot": _Reader.set_sysroot,
    "no-standard-includes": _Reader.drop_standard,
    "target": _Reader.add_target,
    "no-cxx-includes": _Reader.add_target,
    "preprocessor": _Reader.hand_on,
    "preprocessor-argument": _Reader.hand_on_one,
    **dict.fromkeys(_STEPS, _Reader.set_step),
}
_HANDED_ON = frozenset(("define", "undefine"))


# ---- who really compiles ----


def select_tool(
    tools: Tools, tool: Tool, argv: Sequence[bytes]
) -> tuple[Tool, Sequence[bytes]] | None:
    """Return the compiler that a command line is for, and its arguments without a name.

    Follows launchers (`ccache gcc ..`, or ccache under gcc's name) and programs that are several
    by their first argument (`clang -cc1`, `zig cc`) or by an option. None when it is for no
    compiler.
    """
    while tool.kind == "launcher":
        launched = _launched(tools, tool, argv)
        if launched is None:
            return None
        tool, argv = launched
    chosen = _by_mode(tools, tool, argv)
    if chosen is None:
        return None
    tool = chosen
    choice = tool.settings.get("first_argument", {})
    first = argv[1].decode("utf-8", "replace") if len(argv) > 1 else ""
    name = choice.get(first, choice.get("*"))
    if name is None:
        return tool, argv[1:]
    return (tools[name], argv[2:]) if name else None


def _by_mode(tools: Tools, tool: Tool, argv: Sequence[bytes]) -> Tool | None:
    """Return the tool that the last option for it chooses: `clang --driver-mode=cl`."""
    modes = tool.settings.get("modes")
    if not modes:
        return tool
    known = {option.encode(): name for option, name in modes.items()}
    chosen = [known[word] for word in argv[1:] if word in known]
    if not chosen:
        return tool
    return tools[chosen[-1]] if chosen[-1] else None


def named_tool(tools: Tools, argv: Sequence[bytes]) -> Tool | None:
    """Return the tool that a command line runs, by names alone; follows launchers and runners."""
    tool = tools.find_name(argv[0]) if argv else None
    while tool is not None and tool.kind in ("launcher", RUNNER):
        launched = tools.run_by(tool, argv)
        if launched is None:
            break
        argv = launched[1]
        tool = tools.find_name(argv[0])
    return tool


def without_launchers(tools: Tools, tool: Tool, argv: Sequence[bytes]) -> Sequence[bytes]:
    """Return the command that launchers run, its name first; empty without one."""
    while tool.kind == "launcher":
        launched = _launched(tools, tool, argv)
        if launched is None:
            return ()
        tool, argv = launched
    return argv


def _launched(
    tools: Tools, launcher: Tool, argv: Sequence[bytes]
) -> tuple[Tool, Sequence[bytes]] | None:
    """Return what a launcher launches: itself under another name, or its first command.

    Its own options, NAME=value, and programs that run others may be before the command.
    """
    own = tools.find_name(argv[0]) if argv else None
    if own is not None and own.kind == "compiler":
        return own, argv
    launched = tools.run_by(launcher, argv)
    while launched is not None:
        name, words = launched
        found = tools.find_name(words[0]) or tools.find_name(name)
        if found is None or found.kind != RUNNER:
            return None if found is None else (found, words)
        launched = tools.run_by(found, words)
    return None
