# SPDX-License-Identifier: Apache-2.0
"""Paths as given to a program -> the files when it ran, by the trace.

The disk is read only to see whether a directory exists, and only when the trace does not show it.
The table `opens` has the original and the resolved path of each open.
"""

from __future__ import annotations

from array import array
from functools import cache
from pathlib import Path
from posixpath import join, normpath

from libetrace.image.file import Image
from libetrace.image.string_lookup import Lookup, resolve_strings

from etrace.compilers.response import ResponseFiles
from etrace.errors import EtraceError
from etrace.spec.path_style import style_of


def response_files(image: Image, *, reads_disk: bool = True) -> ResponseFiles:
    """Return a reader of captured contents and, if `reads_disk`, of files that were not."""
    style = style_of(image.attributes)
    if "response_files" not in image.tables:
        return ResponseFiles(reads_disk=reads_disk, style=style)
    table = image["response_files"]
    rows = {
        (upid, image.string(path)): content
        for upid, path, content in zip(table["upid"], table["path"], table["content"], strict=True)
    }

    def captured(upid: int, path: bytes) -> bytes | None:
        row = rows.get((upid, path))
        return None if row is None else image.string(row)

    return ResponseFiles(captured, reads_disk=reads_disk, style=style)


#: number of files of a directory that are examined to resolve the directory
SAMPLES = 64


class TracedFiles:
    """Answers for one image; answers about directories are remembered."""

    def __init__(self, image: Image) -> None:
        """EtraceError when the image is damaged."""
        strings, opens = image["strings"], image["opens"]
        self._image = image
        self._style = style_of(image.attributes)
        self.join = self._style.join
        try:
            self._lookup = Lookup(strings["start"], strings["bytes"])
            self._paths: array[int] = resolve_strings(
                image["paths"]["string"], opens["original"], opens["path"], strings.n_rows
            )
        except ValueError as error:
            raise EtraceError(f"{image.path}: {error}", "make it again: cas cache") from error
        self._directories: dict[bytes, bytes] = {}
        self._exists: dict[bytes, bool] = {}

    def strings_with(self, prefix: bytes) -> range:
        """Return the rows of all strings that begin with `prefix`."""
        return range(*self._lookup.prefixed(prefix))

    def path_row(self, path: bytes) -> int:
        """Return the row of `paths` of an absolute path, -1 when nothing opened it."""
        string = self._lookup.find(path)
        return -1 if string < 0 else self._paths[string]

    def resolve(self, path: bytes) -> bytes:
        """Return the resolved path of a file."""
        if self._style.is_windows:
            return self._style.normpath(path)
        for form in (path, normal := normpath(path)):
            row = self.path_row(form)
            if row >= 0:
                return self._image.path_string(row)
        directory, slash, name = normal.rpartition(b"/")
        if not slash:  # in a working directory that is not known
            return normal
        return join(self.resolve_directory(directory or b"/"), name)

    def resolve_directory(self, path: bytes) -> bytes:
        """Return the resolved path of a directory."""
        if self._style.is_windows:
            return self._style.normpath(path)
        found = self._directories.get(path)
        if found is None:
            normal = normpath(path)
            found = self._sampled(path) or self._sampled(normal) or normal
            self._directories[path] = found
        return found

    def _sampled(self, directory: bytes) -> bytes | None:
        """Return the resolved directory by files that were opened through it."""
        prefix = directory.rstrip(b"/") + b"/"
        for string in self.strings_with(prefix)[:SAMPLES]:
            row = self._paths[string]
            if row < 0:
                continue
            below = b"/" + self._image.string(string)[len(prefix) :]
            path = self._image.path_string(row)
            if path.endswith(below) and b"/../" not in below:
                return path[: -len(below)] or b"/"
        return None

    def has_directory(self, path: bytes, cwd: bytes) -> bool:
        """Return whether a resolved directory existed, as far as is known.

        It did when a file in it was opened. Otherwise the disk decides, if the build's `cwd` still
        exists. If not, the answer is yes.
        """
        found = self._exists.get(path)
        if found is None:
            found = self._exists[path] = self._is_used(path) or is_directory(path)
        return found or not is_directory(cwd)

    def has_certainly(self, directory: bytes) -> bool:
        """Return whether a resolved directory exists, by the trace or on the disk."""
        return self._is_used(directory) or is_directory(directory)

    def _is_used(self, directory: bytes) -> bool:
        rows = self.strings_with(directory.rstrip(b"/") + b"/")[:SAMPLES]
        return any(self._paths[row] >= 0 for row in rows)


@cache
def is_directory(path: bytes) -> bool:
    """Return whether a directory is on the disk now; asked once."""
    try:
        return Path(path.decode("utf-8", "surrogateescape")).is_dir()
    except (OSError, ValueError):
        return False
