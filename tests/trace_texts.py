# SPDX-License-Identifier: Apache-2.0
"""A trace in memory -> the texts of its JSON files, without a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from libetrace.convert.json_files import write_json_files
from libetrace.image.file import NewTable, image_in_memory, new_tables
from libetrace.trace.parser import parse
from libetrace.trace.source import Source

from etrace.parse.driver import products

if TYPE_CHECKING:
    from libetrace.trace.parser import Counts


def tables_of(
    inputs: Sequence[bytes], *, jobs: int = 1, chunk_bytes: int = 0, stat: bool = False
) -> tuple[list[NewTable], Counts]:
    """Parse traces, merged by time; return the tables of the image and what was counted."""
    sources = [Source.from_bytes(content) for content in inputs]
    source = sources[0] if len(sources) == 1 else Source.merge(sources)
    columns, counts = parse(source, jobs=jobs, chunk_bytes=chunk_bytes, stat=stat)
    return new_tables(columns, products(counts)), counts


def texts_of(tables: Sequence[NewTable], *, jobs: int = 1, split: int = 0) -> list[bytes]:
    """Return the texts of entries, environment and mounts."""
    fds = [os.memfd_create(name) for name in ("json", "env", "mounts")]
    write_json_files(image_in_memory(tables), (fds[0], fds[1], fds[2]), jobs=jobs, split=split)
    texts = []
    for fd in fds:
        with open(fd, "rb") as stream:  # noqa: PTH123  a descriptor
            stream.seek(0)
            texts.append(stream.read())
    return texts


def parse_bytes(trace: bytes, *, split: int = 0) -> list[bytes]:
    """Return the texts of entries, environment and mounts of a trace, without asking for files."""
    return texts_of(tables_of([trace])[0], split=split)
