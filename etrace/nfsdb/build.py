# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json`, environment and mounts -> `.nfsdb.img`, with what is remembered of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libetrace.image import NewTable, write_image

from etrace.nfsdb.files import DatabaseFiles, remember
from etrace.nfsdb.from_json import read_tables

FIRST_LINE = b"INITCWD="
HEAD_BYTES = 1 << 13  # more than the longest path


def _read_root(trace: Path) -> str | None:
    """Return the directory where the build began, from the first line of its trace."""
    try:
        with trace.open("rb") as stream:
            line = stream.read(HEAD_BYTES).split(b"\n", 1)[0]
    except OSError:
        return None
    if not line.startswith(FIRST_LINE):
        return None
    return line.removeprefix(FIRST_LINE).decode(errors="surrogateescape")


def _first_directory(tables: Sequence[NewTable]) -> str:
    """Return the working directory of the first program, for want of a trace."""
    columns = {(t.name, c.name): memoryview(c.data) for t in tables for c in t.columns}
    binaries = columns["executions", "binary"].cast("i")
    row = next((row for row, binary in enumerate(binaries) if binary >= 0), None)
    if row is None:
        return ""
    string = columns["executions", "cwd"].cast("I")[row]
    begin, end = columns["strings", "start"].cast("Q")[string : string + 2]
    return bytes(columns["strings", "bytes"][begin:end]).decode(errors="surrogateescape")


def build_image(files: DatabaseFiles, attributes: dict[str, Any] | None = None) -> None:
    """Write the image of a database from its JSON files, whole or not at all.

    Products in the JSON become tables. `attributes` are added to those of the image. EtraceError.
    """
    sources = {name: remember(path) for name, path in files.sources.items()}
    tables = read_tables(files)
    root = _read_root(files.trace)
    if root is None:
        root = _first_directory(tables)
    write_image(
        files.image, {"source_root": root, **(attributes or {}), "sources": sources}, tables
    )
