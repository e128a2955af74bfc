# SPDX-License-Identifier: Apache-2.0
"""The files that an execution wrote, and those that its command line names.

Threads and forks that execute nothing (mold's, lld's) count as the execution that started them. The
destination of a rename counts as written, with `close_ns` 0 (docs/nfsdb-json.md, "Opened files").
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from posixpath import basename, normpath

from libetrace.image.devices import device_mask
from libetrace.image.file import Image

from etrace.spec.database import EXISTS, NONE
from etrace.spec.path_style import join_posix

WRITTEN = 3  # bits of a mode: opened for writing
N_FORKED_MAX = 10_000  # limit for one execution; linkers have at most some hundred threads


@dataclass(frozen=True, slots=True)
class Written:
    """One file that was opened for writing, or made by a rename; `path` is a row of `paths`.

    A file that is renamed while it is open for writing has `close_ns` 0 too, but also counts as
    read.
    """

    path: int
    text: bytes
    original: bytes
    is_renamed: bool
    exists: bool


class Outputs:
    """Files that the executions of an image wrote, and their arguments."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._executions = image["executions"]
        self._opens = image["opens"]
        self._arguments = image["arguments"]["string"]
        self._modes = bytes(self._opens["mode"])
        self._is_device = device_mask(image)
        self.text = lru_cache(maxsize=1 << 16)(image.string)
        self.path_text = lru_cache(maxsize=1 << 16)(image.path_string)

    def argv(self, row: int) -> list[bytes]:
        """Return the arguments of an execution."""
        span = self._executions.span("argv.start", row)
        return [self.text(string) for string in self._arguments[span.start : span.stop]]

    def binary(self, row: int) -> bytes:
        """Return the path of what an execution ran, empty before its first exec."""
        path = self._executions["binary"][row]
        return b"" if path == NONE else self.path_text(path)

    def cwd(self, row: int) -> bytes:
        """Return the directory where an execution began."""
        return self.text(self._executions["cwd"][row])

    def of(self, row: int) -> list[Written]:
        """Return the files that one execution wrote, by original path, without devices."""
        span = self._executions.span("opens.start", row)
        modes = self._modes[span.start : span.stop]
        found = [self._written(span.start + i) for i, mode in enumerate(modes) if mode & WRITTEN]
        return [each for each in found if not self._is_device[each.path]]

    def of_family(self, row: int) -> list[Written]:
        """Return the files that an execution, its threads and its forks wrote, its own first."""
        return [each for member in self._family(row) for each in self.of(member)]

    def _written(self, i: int) -> Written:
        path, original = self._opens["path"][i], self._opens["original"][i]
        return Written(
            path,
            self.path_text(path),
            self.text(original),
            self._opens["close_ns"][i] == 0 and self._modes[i] & WRITTEN == 1,
            bool(self._modes[i] & EXISTS),
        )

    def _family(self, row: int) -> Iterator[int]:
        forked, todo = self._image["children"]["execution"], [row]
        for _ in range(N_FORKED_MAX):
            if not todo:
                return
            row = todo.pop()
            yield row
            span = self._executions.span("children.start", row)
            todo += [child for child in forked[span.start : span.stop] if child != NONE]

    def moved_to(self, path: int) -> dict[int, int]:
        """Return where executions renamed this path to, path by execution.

        A hard link has the same events, but its source stays; so an existing path was not moved.
        """
        out: dict[int, int] = {}
        if self._image["paths"]["mode"][path]:
            return out
        opened = self._image["path_opens"]["open"]
        span = self._image["paths"].span("opens.start", path)
        for i in opened[span.start : span.stop]:
            if self._opens["close_ns"][i] == 0 and not self._modes[i] & 1:
                target = self._target(i)
                if target != NONE and self._is_move(path, target):
                    out[self._opens["execution"][i]] = target
        return out

    def _target(self, source: int) -> int:
        """Return the path that a rename made of an open: the first one at or after its time."""
        row, time = self._opens["execution"][source], self._opens["open_ns"][source]
        span = self._executions.span("opens.start", row)
        made = [
            (self._opens["open_ns"][i], self._opens["path"][i])
            for i in span
            if i != source
            and self._modes[i] & WRITTEN
            and self._opens["close_ns"][i] == 0
            and self._opens["open_ns"][i] >= time
        ]
        return min(made)[1] if made else NONE

    def _is_move(self, source: int, target: int) -> bool:
        """Whether it was a rename and not a link: by the existing files, else by the name."""
        if self._image["paths"]["mode"][target]:
            return True
        return self.path_text(source).startswith(self.path_text(target))


def find_named(name: bytes, cwd: bytes, written: Sequence[Written]) -> Written | None:
    """Return the written file that a command line calls `name`, None when it was not written.

    First by the whole path. A symbolic link in the path can hide the match; then by the last
    component if it is unique, or by the present target of the name.
    """
    wanted = normpath(join_posix(cwd, name))
    for each in written:
        if wanted in (each.text, normpath(each.original)):
            return each
    last = basename(wanted)
    same = [each for each in written if last in (basename(each.text), basename(each.original))]
    if not same:
        return None
    if len({each.path for each in same}) == 1:
        return same[0]
    now = os.path.realpath(wanted)
    return next((each for each in same if each.text == now), None)


def find_results(written: Sequence[Written]) -> list[Written]:
    """Return the probable results among the written files when no name is known.

    These are destinations of renames, else files that still exist, else all.
    """
    for wanted in (
        [each for each in written if each.is_renamed],
        [each for each in written if each.exists],
    ):
        if wanted:
            return wanted
    return list(written)
