# SPDX-License-Identifier: Apache-2.0
"""A row of `paths` -> the hashes of that file, and what they are worth (docs/hashes.md)."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.nfsdb.hash_records import State
from etrace.nfsdb.hashes import TABLE

OF_BUILD = frozenset((State.TRACED.word, State.SAME.word))


@dataclass(frozen=True, slots=True)
class FileHash:
    """What is known of the content of a file.

    `sha256` and `git_blob` are hexadecimal digits, empty when there are none; `size` is -1 then.
    `state` is traced, same, changed, gone, unreadable, special or unstable.
    """

    sha256: str
    git_blob: str
    size: int
    state: str

    @property
    def is_of_build(self) -> bool:
        """Whether the hash is that of the content which the build had, as far as is known."""
        return bool(self.sha256) and self.state in OF_BUILD


class Hashes:
    """The table `hashes` of an image, by row of `paths`."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._table = image.tables.get(TABLE)
        self._paths = memoryview(array("I")) if self._table is None else self._table["path"]

    @property
    def are_known(self) -> bool:
        """Whether files were hashed, while the build ran or later."""
        return self._table is not None

    def of(self, path_row: int) -> FileHash | None:
        """Return what is known of a file; None when nobody has looked at it."""
        at = bisect_left(self._paths, path_row)
        if self._table is None or at == len(self._paths) or self._paths[at] != path_row:
            return None
        table = self._table
        return FileHash(
            self._digits(table["sha256"][at]),
            self._digits(table["git_blob"][at]),
            table["size"][at],
            State(table["state"][at]).word,
        )

    def _digits(self, string: int) -> str:
        return self._image.string(string).decode("ascii", "replace") if string >= 0 else ""
