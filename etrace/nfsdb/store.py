# SPDX-License-Identifier: Apache-2.0
"""A directory or file -> the open image of its database, never a stale one.

A missing image, or one that does not fit the JSON beside it, is made from the JSON before it is
opened. When the trace of the directory has changed since, the database is refused, because only
`cas parse` reads traces. A damaged image, another file or another schema is refused too: only `cas
cache` (`update_image`) replaces such files, because the user asks for it. An image alone is a
complete database.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libetrace.image.file import Image, open_image
from libetrace.image.freshness import is_older, is_same, restamped
from libetrace.image.header import ImageError

from etrace.errors import EtraceError
from etrace.nfsdb.files import DatabaseFiles, locate
from etrace.nfsdb.products import reopen, rewrite


class StaleError(EtraceError):
    """The trace of a database has changed since the database was made from it."""


def is_fresh(image: Image, files: DatabaseFiles) -> bool:
    """Return whether the image fits the JSON files beside it; without JSON it is fresh."""
    if not files.json.exists():
        return True
    remembered = image.attributes.get("sources")
    if not isinstance(remembered, Mapping):
        return False
    return all(is_same(path, remembered.get(name)) for name, path in files.sources.items())


def _traces(files: DatabaseFiles) -> tuple[Path, ...]:
    return files.trace, files.trace.with_name(f"{files.trace.name}.zst")


def _check_trace(image: Image, files: DatabaseFiles) -> None:
    """Refuse a database whose trace has been replaced. StaleError."""
    trace = next((path for path in _traces(files) if path.exists()), None)
    if trace is None:
        return
    made = files.json if files.json.exists() else files.image
    known = image.attributes.get("traces") or {}
    named = [kept for name, kept in known.items() if Path(name).name == trace.name]
    if named and any(is_same(trace, kept) for kept in named):
        return
    if named or is_older(made, trace):
        raise StaleError(
            f"{trace} has changed since the database was made from it",
            f"make it again: cas parse; to query the old database: --db {made}",
        )


def _trace_again(files: DatabaseFiles, name: str, kept: Any) -> tuple[str, Any]:
    """Return a remembered trace; if it is beside the image, with its present name and stamp."""
    for trace in _traces(files):
        if Path(name).name == trace.name and trace.exists() and is_same(trace, kept):
            return str(trace.absolute()), restamped(trace, kept)
    return name, kept


def _settled(image: Image, files: DatabaseFiles) -> Image:
    """Let the image of a copied database remember the copies, so that they are read only once."""
    if not files.json.exists():
        return image
    sources, traces = image.attributes["sources"], image.attributes.get("traces") or {}
    wanted = {
        "sources": {
            name: restamped(path, sources.get(name)) for name, path in files.sources.items()
        },
        "traces": dict(_trace_again(files, name, kept) for name, kept in traces.items()),
    }
    if wanted == {"sources": sources, "traces": traces}:
        return image
    with contextlib.suppress(OSError, EtraceError):  # a read-only directory: try next time
        rewrite(image, [], wanted)
    return reopen(files.image)


def open_database(where: Path | None = None, *, is_checked: bool = True) -> Image:
    """Open the database of a directory, image or `.nfsdb.json`; make it again when stale.

    Without `where` it is the one in $DB_DIR, else in the current directory. EtraceError when it is
    missing, damaged or cannot be made, or when its trace has been replaced. `is_checked`: see
    `reopen`.
    """
    files = locate(where)
    is_directory = where is None or where.is_dir()
    for path in (files.image, *files.sources.values()):
        if path.exists() and not path.is_file():  # opening a pipe would block
            raise EtraceError(f"{path}: not a file", "move it away, then: cas parse")
    if not files.has_database:
        command = "cas parse" if files.has_trace else "etrace run -- make -j8"
        raise EtraceError(
            f"{files.image.parent}: no database",
            f"make one: {command}; or name its directory: --db DIR, or DB_DIR=DIR",
        )
    if files.image.exists():
        image = reopen(files.image, is_checked=is_checked)
        if is_fresh(image, files):  # else the JSON may be that of another trace
            if is_directory:
                _check_trace(image, files)
            return _settled(image, files)
    refresh(files)
    image = reopen(files.image)
    if is_directory:
        _check_trace(image, files)
    return image


def _said(files: DatabaseFiles) -> Mapping[str, str]:
    """Return what the user set in a database before, nothing when its image cannot be read."""
    try:
        said = open_image(files.image).attributes.get("said")
    except (ImageError, OSError):
        return {}
    return said if isinstance(said, Mapping) else {}


def refresh(files: DatabaseFiles, said: Mapping[str, str] | None = None) -> None:
    """Make the image of a database again from its JSON; keep what the user set before.

    `said` adds to that: `version`, `source_root`. EtraceError, OSError.
    """
    from etrace.nfsdb.build import build_image  # noqa: PLC0415  slow to import, rarely needed

    try:
        build_image(files, said={**_said(files), **(said or {})})
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise EtraceError(
            f"{files.image}: cannot be made here: {error.strerror}",
            "copy the database to a directory of your own, or let its owner run: cas cache",
        ) from error


def _is_right(files: DatabaseFiles) -> bool:
    try:
        return is_fresh(reopen(files.image), files)
    except (EtraceError, FileNotFoundError):
        return False


def update_image(
    files: DatabaseFiles, said: Mapping[str, str] | None = None, *, force: bool = False
) -> bool:
    """Make a stale or damaged image again; return whether it did. Keeps what the user set.

    EtraceError when there is no JSON, OSError.
    """
    if not force and _is_right(files):
        if said:
            image = reopen(files.image)
            known = {**(image.attributes.get("said") or {}), **said}
            rewrite(image, [], {**known, "said": known})
        return False
    if not files.json.exists():
        raise EtraceError(f"{files.json}: no such file", "make one: cas parse")
    refresh(files, said)
    return True
