# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json`, environment and mounts -> `.nfsdb.img`, which remembers these files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libetrace.core.regular_file import read_head
from libetrace.image.file import Image, write_image
from libetrace.image.freshness import is_older, remember
from libetrace.trace.source import FIRST_LINE

from etrace.nfsdb import hash_records
from etrace.nfsdb.files import DatabaseFiles
from etrace.nfsdb.hashes import add_hashes
from etrace.nfsdb.products import add_responses, read_responses
from etrace.spec import path_style

HEAD_BYTES = 1 << 13  # more than the longest path


def root_of(head: bytes) -> str | None:
    """Return the directory where a build began, from the first line of its trace."""
    line = head.split(b"\n", 1)[0]
    if not line.startswith(FIRST_LINE):
        return None
    return line.removeprefix(FIRST_LINE).decode(errors="surrogateescape")


def _read_root(trace: Path) -> str | None:
    try:
        return root_of(read_head(trace, HEAD_BYTES))
    except OSError:
        return None


def _first_directory(image: Image) -> str:
    """Return the working directory of the first program, used when there is no trace."""
    executions = image["executions"]
    row = next((row for row, binary in enumerate(executions["binary"]) if binary >= 0), None)
    if row is None:
        return ""
    return image.string(executions["cwd"][row]).decode(errors="surrogateescape")


def _remember_trace(files: DatabaseFiles) -> dict[str, Any]:
    """Return the stamp of the trace from which the JSON may have been made; none if it is newer."""
    if not files.trace.exists() or is_older(files.json, files.trace):
        return {}
    return {str(files.trace.absolute()): remember(files.trace)}


def remember_sources(files: DatabaseFiles) -> dict[str, Any]:
    """Return the stamps of the JSON files of a database, None for a missing one."""
    return {name: remember(path) for name, path in files.sources.items()}


def describe(
    image: Image,
    files: DatabaseFiles,
    sources: Mapping[str, Any],
    traces: Mapping[str, Any],
    said: Mapping[str, str],
) -> dict[str, Any]:
    """Return the attributes of an image with complete columns.

    `sources` has the stamps of the JSON files beside it, `traces` those of its traces, by absolute
    path. `said` has the user's `source_root` and `version`. Without a `source_root` the first line
    of the trace beside it gives it, else the directory of the first program. A root on a drive of
    Windows makes it a database of Windows (etrace/spec/path_style.py).
    """
    root = _read_root(files.trace)
    shown = {
        "source_root": _first_directory(image) if root is None else root,
        "version": "",
        **said,
    }
    return {
        **shown,
        **path_style.attributes_of(shown["source_root"]),
        "said": dict(said),
        "sources": dict(sources),
        "traces": dict(traces),
    }


def build_image(files: DatabaseFiles, said: Mapping[str, str] | None = None) -> None:
    """Import the JSON files of a database: write its image, whole or not at all.

    Products in the JSON become tables. `said`: see describe(). EtraceError, OSError.
    """
    from etrace.nfsdb.from_json import read_tables  # noqa: PLC0415  a parser reads no JSON

    sources = remember_sources(files)
    tables, more = read_tables(files)
    traces = _remember_trace(files)

    def attributes(image: Image) -> dict[str, Any]:
        return {**describe(image, files, sources, traces, said or {}), **more}

    made_of = [files.json, *(path for path in files.sources.values() if path.exists())]
    write_image(files.image, attributes, tables, made_of)
    if files.responses.exists():
        add_responses(files.image, read_responses(files.responses))
    side = files.trace.with_name(files.trace.name + hash_records.SUFFIX)
    if traces and side.exists():
        add_hashes(files.image, [side])
