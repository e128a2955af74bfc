# SPDX-License-Identifier: Apache-2.0
"""`l`, `t`: executions of linkers and archivers -> the modules that they made.

A module is a file that the linker's or archiver's own execution opened for writing (its threads
and forks included) and that its command line means; collect2 and the driver, which only start the
linker, make none, so a module is counted once a link. Which programs are linkers say
etrace/compilers/*.toml, by the path that was executed or argv[0], and `ld_spec`, `ar_spec` of the
configuration on top. docs/postprocess.md has the cases.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from posixpath import basename

from libetrace.depend.configuration import Config
from libetrace.image.file import Image, NewTable
from libetrace.select.patterns import PatternSet

from etrace.compilers import ar, tools
from etrace.compilers.options import INPUT, Argument, values
from etrace.compilers.response import Expanded
from etrace.compilers.tools import RUNNER, Tool, Tools
from etrace.figures import agree, count
from etrace.postprocess.compilations.traced_files import response_files
from etrace.postprocess.module_kinds import Kind, kind_of, read_elf_type
from etrace.postprocess.outputs import Outputs, Written, find_named, find_results
from etrace.postprocess.run import Work, product
from etrace.spec.database import NONE

ARCHIVE, LINKED = 0, 1
LINKER, ARCHIVER = "linker", "archiver"
LINKS = "links"  # setting of compilers that contain a linker
#: with one of these a compiler does not link
STOPS = frozenset(("compile", "assemble", "preprocess", "query", "check"))
N_CALLERS = 3  # ld <- collect2 <- gcc <- its parent
PROGRESS_STEP = 256
N_TOLD = 10
#: in the kernel's build, `ld -r -o X.o .tmp_X.o` adds symbol versions to an object
VERSIONED_OBJECT = b".tmp_"


@dataclass(frozen=True, slots=True, order=True)
class Module:
    """One row of `linked`."""

    execution: int
    path: int
    type: int
    kind: int


class Identifier:
    """Identifies executions of linkers and archivers, once for each program and argv[0]."""

    def __init__(self, image: Image, known: Tools, config: Config) -> None:
        self._image, self._known = image, known
        self._listed = tuple(
            (PatternSet(listed), known[name])
            for listed, name in ((config.ld_spec, "ld"), (config.ar_spec, "ar"))
        )

    def find(self) -> Iterator[tuple[int, Tool]]:
        """Yield the executions of linkers and archivers that did not fail, by row."""
        executions, arguments = self._image["executions"], self._image["arguments"]["string"]
        start = executions["argv.start"].tolist()
        found: dict[tuple[int, int], Tool | None] = {}
        rows = zip(executions["binary"], executions["status"], start, start[1:], strict=False)
        for row, (binary, status, first, end) in enumerate(rows):
            if binary == NONE or first == end or status > 0:
                continue
            key = (binary, arguments[first])
            if key not in found:
                found[key] = self._tool(*key)
            tool = found[key]
            if tool is not None and tool.kind == RUNNER:
                words = [self._image.string(string) for string in arguments[first:end]]
                tool = self._making(
                    self._known.running(self._image.path_string(binary), words).tool
                )
            if tool is not None:
                yield row, tool

    def _tool(self, binary: int, argv0: int) -> Tool | None:
        path = self._image.path_string(binary)
        tool = self._known.identify(path, self._image.string(argv0))
        if tool is not None:
            return tool if tool.kind == RUNNER else self._making(tool)
        matching = (generic for patterns, generic in self._listed if any(patterns.match(path)))
        return next(matching, None)

    def _making(self, tool: Tool | None) -> Tool | None:
        """Return a tool if it makes modules, else None."""
        if tool is None or tool.kind in (LINKER, ARCHIVER) or tool.settings.get(LINKS):
            return tool
        return None


class Linked:
    """Finds the modules of one image."""

    def __init__(self, image: Image) -> None:
        self._outputs = Outputs(image)
        self._parents = image["executions"]["parent"]
        self._upid = image["executions"]["upid"]
        self._response_files = response_files(image)
        #: rows of executions with an unknown module, because their response files are gone
        self.unknown: list[int] = []
        self._moves: dict[int, dict[int, int]] = {}
        self._elf_type = cache(read_elf_type)

    def modules(self, row: int, tool: Tool) -> list[Module]:
        """Return the modules that one execution made."""
        expanded = self._expanded(row, tool)
        if tool.kind == ARCHIVER and tool.settings.get("style") == "ar":
            command = ar.parse(expanded.argv, tool.options)
            found = self._archives(row, command, has_all=not expanded.missing)
            return [Module(row, each.path, ARCHIVE, Kind.ARCHIVE) for each in found]
        options = tool.options.parse(expanded.argv[1:])
        if tool.settings.get(LINKS) and STOPS & {option.meaning for option in options}:
            return []
        made = self._output(row, tool, options, has_all=not expanded.missing)
        if made is None or is_versioned_object(made, options):
            return []
        if tool.kind == ARCHIVER:
            return [Module(row, made.path, ARCHIVE, Kind.ARCHIVE)]
        return [Module(row, made.path, LINKED, kind_of(self._elf_type(made.text), options))]

    def _archives(self, row: int, command: ar.ArCommand, *, has_all: bool) -> list[Written]:
        """Return the archives of one `ar`; when arguments are missing, the written files decide."""
        if command.action is ar.Action.READS and has_all:
            return []
        written = self._outputs.of_family(row)
        if command.action is ar.Action.SCRIPT:
            return find_results(written)
        archive = self._named(row, command.operands, written)
        if archive is not None:
            return [archive]
        if has_all:
            return []
        results = find_results(written)
        if len(results) > 1:
            self.unknown.append(row)
        return results if len(results) == 1 else []

    def _output(
        self, row: int, tool: Tool, options: Sequence[Argument], *, has_all: bool
    ) -> Written | None:
        written = self._outputs.of_family(row)
        if not written:
            return None
        names = [*values(options, "output")[-1:]] or [self._default(tool)]
        found = self._named(row, names, written)
        if found is not None or has_all:
            return found
        found = self._named(row, self._names_of_callers(row, tool), written)
        results = find_results(written)
        if found is None and len(results) > 1:
            self.unknown.append(row)
        return found or (results[0] if len(results) == 1 else None)

    def _named(
        self, row: int, names: Sequence[bytes], written: Sequence[Written]
    ) -> Written | None:
        cwd = self._outputs.cwd(row)
        found = (find_named(name, cwd, written) for name in names if name)
        return next((each for each in found if each is not None), None)

    def _default(self, tool: Tool) -> bytes:
        return os.fsencode(tool.settings.get("default_output", "a.out"))

    def _names_of_callers(self, row: int, tool: Tool) -> list[bytes]:
        """Return outputs that callers name: the driver's response file may still exist."""
        out: list[bytes] = []
        for _ in range(N_CALLERS):
            row = self._parents[row]
            if row == NONE:
                break
            out += values(tool.options.parse(self._expanded(row, None).argv[1:]), "output")
        return out

    def _expanded(self, row: int, tool: Tool | None) -> Expanded:
        argv: Sequence[bytes] = self._outputs.argv(row)
        cwd = self._outputs.cwd(row)
        if tool is not None:
            argv = tools.load().running(self._outputs.binary(row), argv).argv
        return self._response_files.expand(argv, cwd, self._upid[row], tool=tool)

    def settle(self, module: Module) -> list[Module]:
        """Return the module under its last name, with the execution that renamed it, if any."""
        moves = self._moves.get(module.path)
        if moves is None:
            moves = self._moves[module.path] = self._outputs.moved_to(module.path)
        elsewhere = [(row, path) for row, path in moves.items() if row != module.execution]
        if not elsewhere:
            return [module]
        return [Module(row, path, module.type, module.kind) for row, path in elsewhere]


def is_versioned_object(made: Written, options: Sequence[Argument]) -> bool:
    """Whether this is an object that the kernel's build links with its symbol versions."""
    wanted = VERSIONED_OBJECT + basename(made.text)
    return any(
        argument.meaning == INPUT and basename(argument.value) == wanted for argument in options
    )


def find_modules(work: Work) -> list[Module]:
    """Return all modules by execution and path."""
    candidates = list(Identifier(work.image, tools.load(), work.config).find())
    finder, found = Linked(work.image), set()
    for number, (row, tool) in enumerate(candidates):
        if number % PROGRESS_STEP == 0:
            work.progress(PHASE.name, number, len(candidates))
        for module in finder.modules(row, tool):
            found.update(finder.settle(module))
    work.progress(PHASE.name, len(candidates), len(candidates))
    if finder.unknown:
        work.say(unknown_links([work.image["executions"]["upid"][row] for row in finder.unknown]))
    return sorted(found)


def unknown_links(upids: Sequence[int]) -> str:
    """Report links whose module is unknown among several written files."""
    subject = agree(len(upids), "link{s} {is|are}")
    listed = " ".join(map(str, upids[:N_TOLD])) + (" .." if len(upids) > N_TOLD else "")
    return (
        f"{subject} left out, as response files are gone and several files were written: "
        f"upid {listed}"
    )


@dataclass(frozen=True, slots=True)
class LinkedModules:
    """The phase."""

    name: str = "linked"
    tables: tuple[str, ...] = ("linked",)
    inputs: tuple[str, ...] = ("ld_spec", "ar_spec")

    def run(self, work: Work) -> list[NewTable]:
        """Make the table `linked`."""
        modules = find_modules(work)
        return [
            product(
                "linked",
                array("I", [each.execution for each in modules]),
                array("I", [each.path for each in modules]),
                array("B", [each.type for each in modules]),
                array("B", [each.kind for each in modules]),
            )
        ]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        _, paths, types, _ = (column.data for column in tables[0].columns)
        n_modules = len(set(paths))
        n_archives = len({path for path, kind in zip(paths, types, strict=True) if not kind})
        return (
            f"{count(len(paths), 'link')} of {count(n_modules, 'module')}, archives: {n_archives:,}"
        )


PHASE = LinkedModules()
