# SPDX-License-Identifier: Apache-2.0
r"""Database image -> `.nfsdb.json` with the keys of docs/nfsdb-json.md.

One execution a line, UTF-8; bytes that are not UTF-8 as `\udcXX` (docs/nfsdb-json.md).
libetrace.convert.exporter makes the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from libetrace.convert import json_files
from libetrace.image.file import Image
from libetrace.image.header import ImageError

from etrace.errors import EtraceError
from etrace.nfsdb.outputs import pending_files

#: entries of one piece of text: a few MB
N_ENTRIES = 1024


def pieces(image: Image) -> Iterator[bytes]:
    """Yield the JSON file in pieces of some MB. EtraceError when the image is damaged."""
    try:
        exporter = json_files.make_exporter(image)
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error
    yield b"[\n"
    for begin in range(0, exporter.n_executions, N_ENTRIES):
        yield exporter.text(begin, min(begin + N_ENTRIES, exporter.n_executions))
    yield b"]\n"


def write_json(image: Image, stream: BinaryIO) -> None:
    """Write the JSON file to a stream. EtraceError, OSError."""
    for piece in pieces(image):
        stream.write(piece)


def write_json_files(
    image: Image, output: Path, models: Sequence[Path], *, jobs: int = 1, split: int = 0
) -> None:
    """Write X.json, X.env.json and X.mounts.json: all of them whole, or none. EtraceError, OSError.

    Only users who can read all of `models` can read them. Entries whose files have paths of more
    than `split` bytes together are split.
    """
    with pending_files(output, models) as fds:
        try:
            json_files.write_json_files(image, fds, jobs=jobs, split=split)
        except ImageError as error:
            raise EtraceError(error.message, error.hint) from error
