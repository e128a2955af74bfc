# SPDX-License-Identifier: Apache-2.0
"""Opens a log, and describes its damage.

It is a file (mapped when nobody else may cut it), standard input, gzip or zstd.
A compressed log is unpacked in memory (etrace.parse.unpacking), damaged data as far as it goes. Its
bytes are all that the readers of libetrace.xray want.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import may_be_mapped

from etrace.errors import EtraceError
from etrace.parse.inputs import STDIN, ZSTD_MAGIC
from etrace.parse.unpacking import Salvaged, gunzip, unzstd

#: (name, offset, skipped bytes, number) as libetrace.xray gives them
RawProblem = tuple[str, int, int, int]

TEXTS = {
    "unknown-kind": "metadata record of unknown kind {number}",
    "unknown-action": "function record with unknown action {number}",
    "negative-size": "event of negative size",
    "record-cut-off": "record cut off by the end of its buffer",
    "garbage": "no record",
    "junk-between": "bytes between buffers",
    "buffer-cut-off": "the buffer's length exceeds the file; read to the end of the file",
    "no-new-buffer": "buffer without a NewBuffer record: its thread is not known (0 is shown)",
    "no-end-of-buffer": "buffer without an EndOfBuffer record",
    "empty-preamble": "buffer with only its preamble",
    "unknown-record-type": "record of unknown type {number}",
    "stray-argument": "argument that belongs to no call",
    "archive-damaged": "the compressed data ends here or is damaged; everything before it is used",
    "trailing-bytes": "bytes after the last whole record",
    "buffer-too-long": "the buffer's length is too large; read up to the next buffer",
    "buffer-too-short": "the buffer's length is too small; read up to the next buffer",
    "buffer-inside": "another buffer begins inside this one, which ends here",
    "no-extents": "a buffer without a BufferExtents record; read up to the next buffer",
    "stray-preamble": "{record} record inside a buffer",
    "no-buffer-size": "no buffer size in the header; buffers are recognised by their first records",
}
#: problems that lose something although no bytes were skipped
LOSSY = (
    "record-cut-off", "buffer-cut-off", "buffer-too-long", "buffer-inside", "no-extents",
    "archive-damaged",
)  # fmt: skip
#: metadata records by number, if a text names them
RECORDS = {0: "NewBuffer", 4: "WallTime", 9: "Pid"}
#: limit of the lines shown; one more line counts the rest
MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of one log."""

    problems: Sequence[RawProblem]
    n_problems: int
    n_skipped_bytes: int

    @property
    def is_lossy(self) -> bool:
        """Return whether some part of the file could not be used."""
        return self.n_skipped_bytes > 0 or any(p[0] in LOSSY for p in self.problems)


def describe(damage: Damage, name: str) -> Iterator[str]:
    """Yield a line for each problem up to a limit, and one for the rest."""
    for kind, offset, skipped, number in damage.problems[:MAX_SHOWN]:
        text = TEXTS[kind].format(number=number, record=RECORDS.get(number))
        lost = f"; {skipped} bytes skipped" if skipped else ""
        yield f"{name}: offset {offset}: {text}{lost}"
    more = damage.n_problems - min(len(damage.problems), MAX_SHOWN)
    if more:
        yield f"{name}: {more} more problems; {damage.n_skipped_bytes} bytes skipped in all"


GZIP_MAGIC = b"\x1f\x8b"


def unpacking_damage(data: Any) -> list[RawProblem]:
    """Return what unpacking a log cost: nothing, or a problem at the end of what is left."""
    return [("archive-damaged", len(data), 0, 0)] if isinstance(data, Salvaged) else []


def _unpack(data: bytes | mmap.mmap, name: str) -> bytes | mmap.mmap:
    if data[:2] == GZIP_MAGIC:
        return gunzip(memoryview(data), name)
    if data[:4] == ZSTD_MAGIC:
        return unzstd(memoryview(data), name)
    return data


def open_log(path: str | os.PathLike[str]) -> bytes | mmap.mmap:
    """Return the bytes of a log; `-` is standard input. EtraceError when it cannot be read."""
    if os.fspath(path) == STDIN:
        return _unpack(sys.stdin.buffer.read(), "standard input")
    path = Path(path)
    try:
        with path.open("rb") as stream:
            if not path.is_file():  # a pipe, as of `<(...)`
                return _unpack(stream.read(), str(path))
            if not may_be_mapped(stream.fileno()) or os.fstat(stream.fileno()).st_size == 0:
                return _unpack(stream.read(), str(path))
            return _unpack(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), str(path))
    except OSError as error:
        raise EtraceError(
            f"cannot read {path}: {error.strerror}", "name an XRay log that you can read"
        ) from error
