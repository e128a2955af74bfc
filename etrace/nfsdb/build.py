# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.json`, environment and mounts -> `.nfsdb.img`, with what is remembered of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from libetrace.image import write_image

from etrace.errors import EtraceError
from etrace.nfsdb.files import DatabaseFiles, remember
from etrace.nfsdb.from_json import Builder, read_entries

FIRST_LINE = b"INITCWD="
HEAD_BYTES = 1 << 13  # more than the longest path


def _read_side(path: Path, kind: type) -> Any:
    """Return the content of a file beside the database, an empty one when it is not there."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return kind()
    except ValueError as error:
        raise EtraceError(f"{path}: {error}", "make it again: cas parse --force") from error
    if not isinstance(content, kind):
        raise EtraceError(f"{path}: holds no {kind.__name__}", "make it again: cas parse --force")
    return content


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


def build_image(files: DatabaseFiles, attributes: dict[str, Any] | None = None) -> None:
    """Write the image of a database from its JSON files, whole or not at all.

    Products in the JSON become tables. `attributes` are added to those of the image. EtraceError.
    """
    sources = {name: remember(path) for name, path in files.sources.items()}
    entries = read_entries(files.json)
    builder = Builder(entries)
    builder.add_environment(_read_side(files.env, dict))
    builder.add_mounts(_read_side(files.mounts, list))
    root = _read_root(files.trace)
    if root is None:
        root = next((entry["w"] for entry in entries if entry.get("w")), "")
    write_image(
        files.image,
        {"source_root": root, **(attributes or {}), "sources": sources},
        builder.build(),
    )
