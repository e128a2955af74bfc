# SPDX-License-Identifier: Apache-2.0
"""Compilations of gcc -> whether gcc names the input files that etrace found (`--confirm-inputs`).

The compiler runs once more, in a scratch directory, with nothing of the traced command line but its
inputs and -x: `gcc -fsyntax-only -fplugin=libgcc_input_name.so -x c /src/a.c`. The plugin ends it
before it parses anything (native/gcc_input_name). Sources are opened for reading, nothing is
written. Other compilers, assembler, standard input and sources that are gone are not asked about.
Which gcc may run at all, and for whose database: trusted.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from libetrace.depend.configuration import Config
from libetrace.image.file import Image

import etrace
from etrace.compilers.invocation import ASSEMBLER, STDIN
from etrace.compilers.options import INPUT, Argument
from etrace.compilers.regular_file import is_regular
from etrace.errors import EtraceError
from etrace.nfsdb.owned import check_owner
from etrace.postprocess.compilations.compiler_commands import Command, CommandReader
from etrace.postprocess.compilations.probe import run_in_scratch
from etrace.postprocess.compilations.process_tree import ProcessTree
from etrace.postprocess.compilations.trusted import trusted_compiler
from etrace.postprocess.run import say_nothing
from etrace.sandbox.programs import UntrustedError
from etrace.spec.path_style import join_posix
from etrace.threads import mapped

PLUGIN = "libgcc_input_name.so"
HINT = "Debian: apt-get install gcc-$(gcc -dumpversion)-plugin-dev g++, then build etrace again"
FAMILY = "gcc"
PLUGIN_OPTION = b"-fplugin="


@dataclass(frozen=True, slots=True)
class Answer:
    """What gcc said of one compilation; `row` is that of `compilations`.

    `named` are the inputs in gcc's words, None when it could not be asked.
    """

    row: int
    found: tuple[bytes, ...]
    named: tuple[bytes, ...] | None

    @property
    def files(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The inputs that etrace found, and those that gcc named."""
        return self.found, self.named or ()

    @property
    def is_same(self) -> bool:
        """Whether both lists name the same files after links are resolved."""
        return self.named is not None and _real(self.named) == _real(self.found)


def find_plugin() -> Path:
    """Return the plugin; EtraceError when this etrace was built without it."""
    path = Path(etrace.__file__).parent / "libexec" / PLUGIN
    if not path.is_file():
        raise EtraceError(f"{path}: built without gcc's plugin", HINT)
    return path


def confirm(
    image: Image,
    config: Config,
    plugin: Path,
    jobs: int,
    progress: Callable[[str, int, int], None],
    say: Callable[[str], None] = say_nothing,
) -> list[Answer]:
    """Ask gcc about all of its eligible compilations; `say` reports each command.

    EtraceError without `cas pp`, and for a database of another user.
    """
    check_owner(image)
    if "compilations" not in image.tables:
        raise EtraceError(f"{image.path} has no compilations yet", "run: cas pp")
    asked = [*_trusted(_questions(image, config, plugin), say)]
    answers = []
    named = mapped(ask_plugin, (command for _, command in asked), max(1, jobs))
    for number, answer in enumerate(named):
        progress("inputs", number + 1, len(asked))
        row, _ = asked[number]
        answers.append(Answer(row, _files(image, row), answer))
    return answers


def _questions(image: Image, config: Config, plugin: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the rows of eligible compilations, and the command for each."""
    reader = CommandReader(image, ProcessTree(image), config)
    commands = reader.commands()
    for row, execution in enumerate(image["compilations"]["execution"]):
        command = commands.get(execution)
        if command is not None and _is_askable(command):
            yield row, command_line(command, reader.arguments(command), plugin)


def _trusted(
    questions: Iterable[tuple[int, list[bytes]]], say: Callable[[str], None]
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the commands of trusted compilers, with the compiler's resolved file.

    Each compiler is reported once.
    """
    known: dict[bytes, bytes] = {}
    for row, (binary, *words) in questions:
        if binary not in known:
            known[binary] = _trusted_file(binary, say)
        yield row, [known[binary], *words] if known[binary] else []


def _trusted_file(binary: bytes, say: Callable[[str], None]) -> bytes:
    try:
        path = os.fsencode(trusted_compiler(binary))
    except UntrustedError as error:
        say(f"does not run {os.fsdecode(binary)}: {error}")
        return b""
    say(f"runs {os.fsdecode(path)} -fsyntax-only with etrace's plugin for each of its compilations")
    return path


def _is_askable(command: Command) -> bool:
    sources = command.invocation.sources
    return (
        command.tool.family == FAMILY
        and not command.is_launched
        and all(each.language != ASSEMBLER and each.name != STDIN for each in sources)
    )


def command_line(command: Command, arguments: Sequence[Argument], plugin: Path) -> list[bytes]:
    """Return the command that makes gcc name its inputs: existing inputs, and -x.

    Inputs are absolute paths of regular files, so none can be an option.
    """
    words = [command.binary, b"-fsyntax-only", PLUGIN_OPTION + os.fsencode(plugin)]
    dialects = command.tool.settings.get("dialects", {})
    for argument in arguments:
        if argument.meaning == "language":
            if argument.value.decode("ascii", "replace") in (*dialects, "none"):
                words += [b"-x", argument.value]
        elif argument.meaning == INPUT:
            path = join_posix(command.cwd, argument.value)
            if path.startswith(b"/") and is_regular(path):
                words.append(path)
    return words


def ask_plugin(command: list[bytes]) -> tuple[bytes, ...] | None:
    """Return the inputs that gcc names; None when it must not run or failed."""
    ended = run_in_scratch(command, owner=_plugin_owner(command)) if command else None
    if ended is None or ended.status != 0:
        return None
    return tuple(ended.stdout.removesuffix(b"\n").split(b"\n")) if ended.stdout else ()


def _plugin_owner(command: list[bytes]) -> int:
    """Return who owns etrace's plugin: root, or the user who installed this etrace."""
    plugin = command[2].removeprefix(PLUGIN_OPTION)
    return Path(os.fsdecode(plugin)).stat().st_uid


def _files(image: Image, row: int) -> tuple[bytes, ...]:
    strings = image["compilation_files"]["string"]
    span = image["compilations"].span("files.start", row)
    return tuple(image.string(strings[each]) for each in span)


def _real(paths: Sequence[bytes]) -> set[bytes]:
    return {os.path.realpath(path) for path in paths}
