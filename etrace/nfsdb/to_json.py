# SPDX-License-Identifier: Apache-2.0
r"""Database image -> `.nfsdb.json` with the keys of docs/nfsdb-json.md.

One execution a line, UTF-8; bytes that are not UTF-8 as `\udcXX` (docs/nfsdb-json.md).
libetrace.convert.exporter makes the text.

The JSON is written whole and renamed, then the image remembers it as its source. After an
interruption between the two, the image is stale and is made again from the JSON, which has the
products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from libetrace.convert import json_files
from libetrace.image.file import Image, replacing
from libetrace.image.freshness import remember
from libetrace.image.header import ImageError

from etrace.errors import EtraceError
from etrace.nfsdb.build import remember_sources
from etrace.nfsdb.files import DatabaseFiles, locate
from etrace.nfsdb.outputs import pending_files
from etrace.nfsdb.products import reopen, rewrite

#: entries of one piece of text: a few MB
N_ENTRIES = 1024
#: attribute of an image: the `phases` in its JSON when that was last written
ATTRIBUTE = "phases_in_json"


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


# ---- of a database ----


def unknown_keys(image: Image) -> int:
    """Return the number of unknown keys in the JSON, which writing it again would lose."""
    return int(image.attributes.get("unknown_keys", 0))


def is_due(image: Image, *, is_new: bool) -> bool:
    """Return whether the JSON lacks products of the image; `is_new`: some were just made.

    Without a JSON there is nothing to write: an image alone is a complete database.
    """
    known = image.attributes.get(ATTRIBUTE)
    return locate(image.path).json.exists() and (is_new or known != image.attributes.get("phases"))


def add_json(files: DatabaseFiles, jobs: int) -> None:
    """Write the JSON files of a database that has none. EtraceError, OSError."""
    image = reopen(files.image)
    write_json_files(image, files.json, [files.image], jobs=jobs)
    phases = image.attributes.get("phases")
    rewrite(image, [], {"sources": remember_sources(files), ATTRIBUTE: phases})


def write_back(path: Path) -> None:
    """Write the JSON file of the image at `path` again, with its products. EtraceError, OSError."""
    image = reopen(path)
    files = locate(path)
    with replacing(files.json) as stream:
        write_json(image, stream)
    sources: dict[str, Any] = dict(image.attributes.get("sources") or {})
    sources["json"] = remember(files.json)
    rewrite(image, [], {"sources": sources, ATTRIBUTE: image.attributes.get("phases")})
    image.close()
