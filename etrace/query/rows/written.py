# SPDX-License-Identifier: Apache-2.0
"""The table `written` of an image -> what executions wrote to standard error and output."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from libetrace.image.file import Image

from etrace.figures import count
from etrace.query.rows.commands import nearest_commands

TABLE = "written"
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
#: what colours text, moves the cursor, sets a title or makes a link (ECMA-48: CSI, OSC, others)
ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\^-~])"
)


class Piece(NamedTuple):
    """Bytes that follow each other; `cut_bytes` are missing before them."""

    descriptor: int
    cut_bytes: int
    text: bytes


class Written:
    """What the executions of one image wrote."""

    def __init__(self, image: Image) -> None:
        self.is_known = TABLE in image.tables
        self._image = image
        self._execution = self._column("execution")
        self._descriptor, self._cut = self._column("descriptor"), self._column("cut_bytes")
        self._string = self._column("string")

    def _column(self, name: str) -> Sequence[int]:
        return self._image[TABLE][name] if self.is_known else ()

    def executions(self) -> list[int]:
        """Return the executions that wrote anything, ascending."""
        return list(dict.fromkeys(self._execution))

    def by_command(self) -> dict[int, list[int]]:
        """Return by command the executions that wrote: itself, and forks that ran no program."""
        found: dict[int, list[int]] = {}
        command = nearest_commands(self._image["executions"]) if self.is_known else []
        for execution in self.executions():
            found.setdefault(command[execution], []).append(execution)
        return found

    def pieces(self, execution: int) -> list[Piece]:
        """Return what an execution wrote, by descriptor; a piece ends where bytes are missing."""
        first = bisect_left(self._execution, execution)
        rows = range(first, bisect_left(self._execution, execution + 1))
        found: list[Piece] = []
        for i in sorted(rows, key=self._descriptor.__getitem__):
            text = self._image.string(self._string[i])
            if found and found[-1].descriptor == self._descriptor[i] and not self._cut[i]:
                found[-1] = found[-1]._replace(text=found[-1].text + text)
            else:
                found.append(Piece(self._descriptor[i], self._cut[i], text))
        return found

    def lines(self, execution: int, descriptor: int) -> list[bytes]:
        """Return lines without the escapes of a terminal; one says how much is missing."""
        whole = b""
        for piece in self.pieces(execution):
            if piece.descriptor == descriptor:
                whole += _missing(piece.cut_bytes) + piece.text
        plain = ESCAPES.sub(b"", whole).replace(b"\r\n", b"\n")
        return plain.removesuffix(b"\n").split(b"\n") if plain else []

    def record(self, execution: int) -> list[dict[str, Any]]:
        """Return the pieces for JSON, their bytes as text by surrogateescape."""
        return [
            {**piece._asdict(), "text": piece.text.decode(errors="surrogateescape")}
            for piece in self.pieces(execution)
        ]

    def numbered_lines(self, execution: int) -> Iterator[bytes]:
        """Yield all lines with the number of their descriptor before them: `2| error`."""
        for descriptor in (STANDARD_OUTPUT, STANDARD_ERROR):
            for line in self.lines(execution, descriptor):
                yield b"%d| %b" % (descriptor, line)


def _missing(n_bytes: int) -> bytes:
    return f"\n[{count(n_bytes, 'byte')} left out]\n".encode() if n_bytes else b""
