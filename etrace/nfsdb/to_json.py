# SPDX-License-Identifier: Apache-2.0
r"""Database image -> `.nfsdb.json` with the keys of the seed, as etrace_parser writes them.

One execution a line, UTF-8; bytes that are not UTF-8 as `\udcXX` (docs/nfsdb-json.md).
libetrace.convert.exporter makes the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from libetrace.convert.exporter import Exporter
from libetrace.image.columns import Columns
from libetrace.image.file import Image
from libetrace.image.header import ImageError

from etrace.errors import EtraceError
from etrace.spec.database import COLUMNS

#: entries of one piece of text: a few MB
N_ENTRIES = 1024


def pieces(image: Image) -> Iterator[bytes]:
    """Yield the JSON file in pieces of some MB. EtraceError when the image is damaged."""
    try:
        exporter = Exporter(Columns(image, COLUMNS))
    except ImageError as error:
        raise EtraceError(error.message, error.hint) from error
    yield b"[\n"
    for begin in range(0, exporter.n_entries, N_ENTRIES):
        yield exporter.entries(begin, min(begin + N_ENTRIES, exporter.n_entries))
    yield b"]\n"


def write_json(image: Image, stream: BinaryIO) -> None:
    """Write the JSON file to a stream. EtraceError, OSError."""
    for piece in pieces(image):
        stream.write(piece)
