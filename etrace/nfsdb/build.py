# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json`, environment and mounts -> `.nfsdb.img`, with what is remembered of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from libetrace.image.file import NewTable, write_image
from libetrace.image.freshness import is_older, remember
from libetrace.trace.source import FIRST_LINE

from etrace.nfsdb.files import DatabaseFiles
from etrace.nfsdb.from_json import read_tables

HEAD_BYTES = 1 << 13  # more than the longest path


def root_of(head: bytes) -> str | None:
    """Return the directory where a build began, from the first line of its trace."""
    line = head.split(b"\n", 1)[0]
    if not line.startswith(FIRST_LINE):
        return None
    return line.removeprefix(FIRST_LINE).decode(errors="surrogateescape")


def _read_root(trace: Path) -> str | None:
    try:
        with trace.open("rb") as stream:
            return root_of(stream.read(HEAD_BYTES))
    except OSError:
        return None


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


def _remember_trace(files: DatabaseFiles) -> dict[str, Any]:
    """Return what is remembered of a trace that the JSON may have been made of: not a newer one."""
    if not files.trace.exists() or is_older(files.json, files.trace):
        return {}
    return {str(files.trace.absolute()): remember(files.trace)}


def build_image(
    files: DatabaseFiles,
    traces: Mapping[str, Any] | None = None,
    said: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the image of a database from its JSON files, whole or not at all.

    Products in the JSON become tables. `traces` is what is remembered of the traces that the JSON
    was made of, by absolute path (without it: of the one beside it). `said` is what the user said
    of the database: `source_root`, else from the first line of the trace, else the directory of the
    first program; `version`. `more` are further attributes. EtraceError, OSError.
    """
    sources = {name: remember(path) for name, path in files.sources.items()}
    tables, n_unknown = read_tables(files)
    traces = _remember_trace(files) if traces is None else traces
    root = _read_root(files.trace)
    attributes = {
        "source_root": _first_directory(tables) if root is None else root,
        "version": "",
        **(said or {}),
        "said": dict(said or {}),
        "sources": sources,
        "traces": dict(traces),
        "unknown_keys": n_unknown,
        **(more or {}),
    }
    made_of = [files.json, *(path for path in files.sources.values() if path.exists())]
    write_image(files.image, attributes, tables, made_of)
    if files.responses.exists():
        from etrace.nfsdb.responses import add_table  # noqa: PLC0415  few builds have any

        add_table(files)
