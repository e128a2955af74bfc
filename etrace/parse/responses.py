# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.rsp` of traces -> `X.rsp.json` of the database (docs/compilations.md)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from libetrace.core.folders import give_away, narrow, opened_folder
from libetrace.image.file import replacing

from etrace.compilers.regular_file import read_regular
from etrace.parse.inputs import STDIN, ZSTD_SUFFIX

SUFFIX = ".rsp"
FIRST_LINE = b"etrace response files 1"
#: the tracer keeps 64 MB of contents and 65536 paths
MAX_BYTES = 512 << 20
#: a record may name an earlier content: what all unfold to, at least and by their file
UNFOLDED_BYTES, UNFOLDED_RATIO = 64 << 20, 100


def read(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (upid, path, content) of each record up to one that is damaged, cut off, too much."""
    first, _, _ = data.partition(b"\n")
    at = len(first) + 1
    contents: list[bytes] = []
    n_left = max(UNFOLDED_BYTES, UNFOLDED_RATIO * len(data))
    while first == FIRST_LINE and (end := data.find(b"\n", at)) >= 0:
        try:
            kind, upid, n_path, number = data[at:end].split(b" ")
            path = _taken(data, end + 1, int(n_path))
            at = end + 2 + len(path)
            if kind == b"file":
                contents.append(_taken(data, at, int(number)))
                at += len(contents[-1]) + 1
                content = contents[-1]
            elif kind == b"same" and not number.startswith(b"-"):
                content = contents[int(number)]
            else:
                return
            n_left -= len(content)
            if n_left < 0:
                return
            yield int(upid), path, content
        except (ValueError, IndexError):
            return


def _taken(data: bytes, at: int, n_bytes: int) -> bytes:
    """Return bytes that end with a newline, without it. ValueError."""
    taken = data[at : at + n_bytes]
    if n_bytes < 0 or len(taken) != n_bytes or data[at + n_bytes : at + n_bytes + 1] != b"\n":
        raise ValueError("cut off")
    return taken


def find_sides(traces: Sequence[str], suffix: str = SUFFIX) -> list[Path]:
    """Return the files beside traces: those with the contents of response files, or others."""
    sides = [Path(name.removesuffix(ZSTD_SUFFIX) + suffix) for name in traces if name != STDIN]
    return [side for side in sides if side.exists()]


def collect(sides: Sequence[Path]) -> list[tuple[int, bytes, bytes]]:
    """Return (upid, path, content) of all records."""
    found: list[tuple[int, bytes, bytes]] = []
    for side in sides:
        found += read(read_regular(os.fsencode(side), MAX_BYTES) or b"")
    return found


def write(found: Sequence[tuple[int, bytes, bytes]], sides: Sequence[Path], target: Path) -> None:
    """Write the records to a file of the database; without records remove it."""
    if not found:
        with opened_folder(target.parent) as folder, contextlib.suppress(FileNotFoundError):
            os.unlink(target.name, dir_fd=folder)
        return
    with replacing(target, is_new=True) as stream:
        narrow(stream.fileno(), sides)
        give_away(stream.fileno(), sides)
        records = [(upid, _text(path), _text(text)) for upid, path, text in found]
        stream.write(json.dumps(records).encode())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
