# SPDX-License-Identifier: Apache-2.0
"""The tables `compilations*` and `linked` -> compile_commands.json, and links in a file like it.

Format: "JSON Compilation Database Format Specification" of the Clang documentation. One entry for
each compiled file and output, with the arguments of the last command that wrote it and no other
source. A stage that a driver started has the driver's arguments. Launchers are left away:
`ccache gcc -c a.c` is `gcc -c a.c`, whether ccache then ran gcc, with other arguments, or had the
object. Response files are replaced by what they held.

A header has the options of one of the compilations that read it: that of a source of the same name
in the same directory, else of the same name anywhere, else the first. Headers of the system are
left out. A link has `directory`, `arguments` (or `command`), `output` and `kind`; its command is
that of the compiler that started the linker.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import join, splitext
from typing import Any, BinaryIO

from libetrace.image.file import Image

from etrace.compilers import one_unit
from etrace.compilers.invocation import STDIN, Step, read_invocation
from etrace.compilers.options import values
from etrace.errors import EtraceError
from etrace.export.command_lines import Command, Commands, Paths, PathStyle
from etrace.query.compilations import objects, readers, sources
from etrace.query.rows.classes import ARCHIVE, EXECUTABLE, PARTIAL, SHARED, product
from etrace.query.rows.file_kinds import FileKind, FileKinds, is_of_system
from etrace.query.select.selection import EVERYTHING
from etrace.query.select.sources import SourceSelection

NAME = "compile_commands.json"
#: of outputs without -o
SUFFIXES = {Step.OBJECT: b".o", Step.ASSEMBLY: b".s"}
Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """How entries are written.

    `is_text`: the command is one string for a shell, under the key `command`. `expands` replaces
    response files by their content. `with_headers` adds entries of headers.
    """

    paths: PathStyle = PathStyle.ABSOLUTE
    is_text: bool = False
    expands: bool = True
    with_headers: bool = False


def entries(
    image: Image,
    rows: Iterable[int] | None = None,
    choice: SourceSelection | None = None,
    form: Form | None = None,
) -> list[Entry]:
    """Return the entries of compilations, all or by row, in their order.

    With `choice` only its sources; bytes by surrogateescape. EtraceError when the
    database has no compilations yet.
    """
    table = image.tables.get("compilations")
    if table is None:
        raise EtraceError(f"{image.path} has no compilations yet", "run: cas pp")
    selected = list(range(table.n_rows) if rows is None else rows)
    writer = _Writer(image, choice or SourceSelection(), form or Form())
    found = [entry for row in selected for entry in writer.of_compilation(row)]
    if writer.form.with_headers:
        found += writer.of_headers(selected)
    return _unique(found)


def write(stream: BinaryIO, found: Sequence[Entry]) -> int:
    """Write entries as JSON, in ASCII so that every byte survives; returns how many."""
    stream.write(json.dumps(found, indent=2).encode() + b"\n")
    return len(found)


def _unique(found: Iterable[Entry]) -> list[Entry]:
    """Return the last entry of each source and output; of identical others the first."""
    kept: dict[Any, Entry] = {}
    for entry in found:
        key: Any = json.dumps(entry)
        if "output" in entry:
            key = tuple(join(entry["directory"], entry[name]) for name in ("file", "output"))
            kept.pop(key, None)
        kept.setdefault(key, entry)
    return list(kept.values())


class _Writer:
    """Makes the entries of one image."""

    def __init__(self, image: Image, choice: SourceSelection, form: Form) -> None:
        self._image, self._choice, self.form = image, choice, form
        self._commands = Commands(image, expands=form.expands)
        self._paths = Paths(self._commands, form.paths)

    def of_compilation(self, row: int) -> Iterator[Entry]:
        files = sources(self._image, row)
        kept = [file for file in files if self._choice.takes(file)]
        if not kept:
            return
        command = self._commands.of_compilation(row)
        named = [each for each in one_unit.sources(command.tool, command.words) if each[1] != STDIN]
        outputs = objects(self._image, row)
        for file in kept:
            output = _output_of(file, len(files), outputs, is_one=_links(command))
            if not outputs and self._commands.is_done_elsewhere(row):
                output = self._named_output(command, file)
            yield self._entry(command, named, file, output)

    def _named_output(self, command: Command, file: bytes) -> bytes | None:
        """Return the output that a command names, or by default has, without a trace of it."""
        invocation = read_invocation(command.tool, command.words)
        suffix = None if invocation is None else SUFFIXES.get(invocation.step)
        if invocation is None or suffix is None:
            return None
        default = _stem(file).rpartition(b"/")[2] + suffix
        name = invocation.outputs[-1] if invocation.outputs else default
        return self._commands.files.resolve(self._commands.files.join(command.cwd, name))

    def _entry(
        self, command: Command, named: list[tuple[int, bytes]], file: bytes, output: bytes | None
    ) -> Entry:
        is_own = self._own(command, named, file)
        name = next((name for at, name in named if at in is_own), None)
        others = {at for at, _ in named} - is_own if is_own else set[int]()
        one = command.with_words(one_unit.without(command.tool, command.words, others))
        entry = self._written(one, self._paths.shown(command, name, file))
        if output is not None:
            entry["output"] = show(self._output(command, name or file, output))
        return entry

    def _own(self, command: Command, named: list[tuple[int, bytes]], file: bytes) -> set[int]:
        """Return where a command names a file. With one name it is that one."""
        if len({name for _, name in named}) == 1:
            return {at for at, _ in named}
        return {at for at, name in named if self._paths.is_file(command, name, file)}

    def _output(self, command: Command, source: bytes, output: bytes) -> bytes:
        invocation = read_invocation(command.tool, command.words)
        names = [] if invocation is None else invocation.outputs
        default = _stem(source) + b"." + output.rpartition(b".")[2]
        name = self._paths.named(command, [*names, default], output)
        return self._paths.shown(command, name, output)

    def _written(self, command: Command, file: bytes) -> Entry:
        return {**entry_of(command, self.form), "file": show(file)}

    def of_headers(self, rows: Sequence[int]) -> Iterator[Entry]:
        languages = self._image["compilations"]["language"]
        for header, row in sources_of_headers(self._image, rows):
            if self._choice.passes(header):
                command = self._commands.of_compilation(row)
                language = self._image.string(languages[row]).decode()
                path = self._paths.shown(command, None, header)
                words = one_unit.for_header(command.tool, command.words, path, language)
                if words is not None:
                    yield self._written(command.with_words(words), path)

    def of_link(self, execution: int, path: int, kind: int) -> Entry:
        command = self._commands.of_link(execution)
        output = self._image.path_string(path)
        outputs = values(command.tool.options.parse(command.words), "output")
        name = self._paths.named(command, [*outputs, *command.words], output)
        shown = self._paths.shown(command, name, output)
        return {**entry_of(command, self.form), "output": show(shown), "kind": LINK_KINDS[kind]}


def _output_of(file: bytes, n_files: int, outputs: list[bytes], *, is_one: bool) -> bytes | None:
    """Return the object of a source: the first, or of several sources the one with its name.

    `is_one`: all sources end in one file.
    """
    if is_one or n_files == 1 or len(outputs) <= 1:
        return outputs[0] if outputs else None
    return next((each for each in outputs if _stem(each) == _stem(file)), None)


def _links(command: Command) -> bool:
    """Return whether a compiler was asked to link what it compiled."""
    invocation = read_invocation(command.tool, command.words)
    links = "default_output" in command.tool.settings
    return links and invocation is not None and invocation.step is Step.LINK


def _stem(path: bytes) -> bytes:
    name = path.rpartition(b"/")[2]
    return name.rpartition(b".")[0] or name


def entry_of(command: Command, form: Form) -> Entry:
    """Return what a command is: its directory and its arguments."""
    words = list(map(show, command.argv))
    command_key: Entry = {"command": shlex.join(words)} if form.is_text else {"arguments": words}
    return {"directory": show(command.cwd), **command_key}


def show(text: bytes) -> str:
    """Return bytes as text; those that are not UTF-8 by surrogateescape."""
    return text.decode("utf-8", "surrogateescape")


def sources_of_headers(image: Image, rows: Sequence[int]) -> Iterator[tuple[bytes, int]]:
    """Yield headers and rows of `compilations`, in order of paths; only those of `rows` count."""
    kinds, wanted = FileKinds(image), set(rows)
    for path, found in sorted(readers(image, EVERYTHING).items()):
        header, own = image.path_string(path), sorted(found & wanted)
        if own and kinds.of(path) is FileKind.HEADER and not is_of_system(header):
            yield header, max(own, key=lambda row: (_likeness(image, header, row), -row))


def _likeness(image: Image, header: bytes, row: int) -> int:
    stem = splitext(header)[0]
    stems = [splitext(source)[0] for source in sources(image, row)]
    if stem in stems:
        return 2
    name = stem.rpartition(b"/")[2]
    return int(any(each.rpartition(b"/")[2] == name for each in stems))


LINK_KINDS = {ARCHIVE: "archive", EXECUTABLE: "executable", SHARED: "shared", PARTIAL: "partial"}


def link_entries(image: Image, form: Form | None = None) -> list[Entry]:
    """Return the entries of all links, in order of their executions. EtraceError before cas pp."""
    linked = product(image, "linked", "linked modules")
    writer = _Writer(image, SourceSelection(), form or Form())
    return [
        writer.of_link(linked["execution"][row], linked["path"][row], linked["kind"][row])
        for row in _in_order(image, linked["execution"])
    ]


def _in_order(image: Image, executions: memoryview) -> list[int]:
    start = image["executions"]["start_ns"]
    return sorted(range(len(executions)), key=lambda row: (start[executions[row]], row))
