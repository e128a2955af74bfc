# SPDX-License-Identifier: Apache-2.0
"""Compilations of gcc -> whether gcc names the input files that etrace found (`--confirm-inputs`).

The compiler runs once more, in a scratch directory, with nothing of the traced command line but its
inputs and -x: `gcc -fsyntax-only -fplugin=libgcc_input_name.so -x c /src/a.c`. The plugin ends it
before it parses anything (native/gcc_input_name). Sources are opened for reading, nothing is
written. Other compilers, assembler, standard input and sources that are gone are not asked about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from posixpath import join

from libetrace.image import Image

import etrace
from etrace.compilers.invocation import ASSEMBLER, STDIN
from etrace.compilers.options import INPUT, Argument
from etrace.errors import EtraceError
from etrace.postprocess.compiler_commands import Command, CommandReader
from etrace.postprocess.config import Config
from etrace.postprocess.process_tree import ProcessTree
from etrace.postprocess.scratch import may_run, run_in_scratch

PLUGIN = "libgcc_input_name.so"
HINT = "Debian: apt-get install gcc-12-plugin-dev g++, then build etrace again"
FAMILY = "gcc"


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
        """What etrace found, and what gcc named."""
        return self.found, self.named or ()

    @property
    def is_same(self) -> bool:
        """Whether both lists name the same files, links followed."""
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
) -> list[Answer]:
    """Ask about every compilation of gcc that can be asked about. EtraceError without `cas pp`."""
    if "compilations" not in image.tables:
        raise EtraceError(f"{image.path}: compilations were not looked for", "run: cas pp")
    asked = list(_questions(image, config, plugin))
    answers = []
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        named = pool.map(ask_plugin, (command_line for _, command_line in asked))
        for number, answer in enumerate(named):
            progress("inputs", number + 1, len(asked))
            row, _ = asked[number]
            answers.append(Answer(row, _files(image, row), answer))
    return answers


def _questions(image: Image, config: Config, plugin: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Give the rows of compilations that can be asked about, and the command that asks."""
    reader = CommandReader(image, ProcessTree(image), config)
    commands = reader.commands()
    for row, execution in enumerate(image["compilations"]["execution"]):
        command = commands.get(execution)
        if command is not None and _is_askable(command):
            yield row, command_line(command, reader.arguments(command), plugin)


def _is_askable(command: Command) -> bool:
    sources = command.invocation.sources
    return (
        command.tool.family == FAMILY
        and not command.is_launched
        and all(each.language != ASSEMBLER and each.name != STDIN for each in sources)
    )


def command_line(command: Command, arguments: Sequence[Argument], plugin: Path) -> list[bytes]:
    """Return the command that makes gcc name its inputs: those that are there, and -x."""
    words = [command.binary, b"-fsyntax-only", b"-fplugin=" + os.fsencode(plugin)]
    for argument in arguments:
        path = join(command.cwd, argument.value)
        if argument.meaning == "language":
            words += [b"-x", argument.value]
        elif argument.meaning == INPUT and os.path.exists(path):  # noqa: PTH110  bytes
            words.append(path)
    return words


def ask_plugin(command: list[bytes]) -> tuple[bytes, ...] | None:
    """Return the inputs that gcc names; None when it must not run, is gone or failed."""
    if not may_run(Path(os.fsdecode(command[0]))):
        return None
    ended = run_in_scratch(command)
    return tuple(ended.stdout.splitlines()) if ended and ended.status == 0 else None


def _files(image: Image, row: int) -> tuple[bytes, ...]:
    strings = image["compilation_files"]["string"]
    span = image["compilations"].span("files.start", row)
    return tuple(image.string(strings[each]) for each in span)


def _real(paths: Sequence[bytes]) -> set[bytes]:
    return {os.path.realpath(path) for path in paths}
