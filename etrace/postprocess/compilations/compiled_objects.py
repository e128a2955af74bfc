# SPDX-License-Identifier: Apache-2.0
"""What the processes of a compilation wrote -> the files that it made.

The file that -o names, or that the compiler names after the source, counts when it was written; so
do other written files with the extension of an object. Dependency files, listings and temporary
files do not. Facts: GCC's manual, "Overall Options" (-o), and `etrace/compilers/*.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cache
from posixpath import normpath

from libetrace.image.devices import device_mask
from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.compilers.invocation import Invocation, Step
from etrace.compilers.tools import Tool
from etrace.postprocess.compilations.compiler_commands import Command
from etrace.postprocess.compilations.process_tree import ProcessTree
from etrace.spec.database import IS_WRITE
from etrace.spec.path_style import join_posix

TEMPORARY_DIRECTORIES = frozenset((b"/tmp", b"/var/tmp", b"/usr/tmp", b"/dev/shm"))
SUFFIX = {Step.OBJECT: b".o", Step.ASSEMBLY: b".s"}


class CompiledObjects:
    """Finds outputs in one image. `temporary_directories` are further ones, from TMPDIR."""

    def __init__(
        self, image: Image, tree: ProcessTree, temporary_directories: Iterable[bytes] = ()
    ) -> None:
        opens = image["opens"]
        self._image, self._tree = image, tree
        self._start = image["executions"]["opens.start"]
        self._path = opens["path"]
        self._original = opens["original"]
        self._path_string = image["paths"]["string"]
        self._is_write = bytes(opens["mode"]).translate(IS_WRITE)
        self._is_device = device_mask(image)
        self._temporary = TEMPORARY_DIRECTORIES.union(temporary_directories)
        self._temporary_name = _any_of(
            glob for tool in tools.load() for glob in tool.settings.get("temporary", ())
        )

    def made(self, command: Command, parent: Command | None) -> list[int]:
        """Return rows of `paths`: what a compilation made, what its command line calls it first.

        The rest is in order of the first writing process. `parent` is the driver of a stage: of
        what the stage leaves in temporary files, the driver makes the result.
        """
        named, others = self._made_below(command, is_stage=parent is not None)
        if parent is not None and not named:
            named, of_all_stages = self._made_below(parent, is_stage=False)
            others = others or ([] if named else of_all_stages)
        return [*named, *others]

    def _made_below(self, command: Command, *, is_stage: bool) -> tuple[list[int], list[int]]:
        """Return what the command line calls outputs, and other objects."""
        tool, expected = command.tool, expected_outputs(command.invocation, command.cwd)
        extensions = _object_extensions(tool)
        named: dict[int, None] = {}
        others: dict[int, None] = {}
        without_extension: dict[int, None] = {}
        for open_row in self._written(command.row):
            path = self._path[open_row]
            if path in named or path in others:
                continue
            name = self._image.path_string(path)
            is_expected = name in expected or self._asked_for(open_row, path) in expected
            may_be_temporary = is_stage or not is_expected
            if self._is_device[path] or self._is_no_result(name, may_be_temporary, tool):
                continue
            extension = _extension(name)
            if is_expected:
                named[path] = None
            elif extension and extension in extensions:
                others[path] = None
            elif extension in extensions:
                without_extension[path] = None
        return list(named), list(others if named or others else without_extension)

    def _asked_for(self, open_row: int, path: int) -> bytes:
        """Return the name that an open used, normalised; empty when it is the path's own."""
        original = self._original[open_row]
        is_own = original == self._path_string[path]
        return b"" if is_own else normpath(self._image.string(original))

    def _is_no_result(self, path: bytes, may_be_temporary: bool, tool: Tool) -> bool:
        directory, _, name = path.rpartition(b"/")
        if may_be_temporary and directory in self._temporary and self._temporary_name.match(name):
            return True
        return _intermediate_names(tool).match(path) is not None

    def _written(self, row: int) -> Iterator[int]:
        """Give the opens for writing of an execution and all below it."""
        for execution in self._tree.below(row):
            at, end = self._start[execution], self._start[execution + 1]
            while (at := self._is_write.find(1, at, end)) >= 0:
                yield at
                at += 1


def expected_outputs(invocation: Invocation, cwd: bytes) -> frozenset[bytes]:
    """Return what the command line calls the outputs, absolute and normalised."""
    if invocation.step is Step.CHECK:
        return frozenset()
    names = list(invocation.outputs)
    if not names:
        names = [_named_after(source.name, invocation) for source in invocation.sources]
    return frozenset(normpath(join_posix(cwd, name)) for name in names if name)


def _named_after(source: bytes, invocation: Invocation) -> bytes:
    suffix = SUFFIX.get(invocation.step)
    settings = invocation.tool.settings
    if suffix is None:
        default: str = settings.get("default_output", "")
        return default.encode() or source.rpartition(b"/")[2].rpartition(b".")[0] + b".o"
    if invocation.step is Step.OBJECT:
        suffix = settings.get("object_suffix", "").encode() or suffix
    stem = source.rpartition(b"/")[2]
    return (stem.rpartition(b".")[0] or stem) + suffix


def _extension(path: bytes) -> bytes:
    name = path.rpartition(b"/")[2]
    return name.rpartition(b".")[2] if b"." in name else b""


@cache
def _object_extensions(tool: Tool) -> frozenset[bytes]:
    return frozenset(each.encode() for each in tool.settings.get("objects", ()))


@cache
def _intermediate_names(tool: Tool) -> re.Pattern[bytes]:
    return _any_of(tool.settings.get("intermediate", ()))


def _any_of(globs: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(map(translate, globs)).encode() or b"(?!)")
