# SPDX-License-Identifier: Apache-2.0
"""Whose database is it? Another user's, or one that another user could replace, is refused.

That it is the user's own says nothing about who wrote it: etrace/nfsdb/marks.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.nfsdb import marks
from etrace.nfsdb.files import name_files

COMPILERS = (
    "its compilers are not run",
    "run cas pp without --ask-compilers and --confirm-inputs, or as that user",
)


def check_owner(image: Image, refused: tuple[str, str] = COMPILERS) -> None:
    """Refuse a database that another user made, or could replace. EtraceError.

    `refused` are what is not done then, and the hint.

    Its image, the trace and JSON beside it, the traces that it remembers, and its directory.
    """
    for path in (*_files(image), image.path.absolute().parent):
        _check_owner(path, refused)
    try:
        is_other = image.path.stat().st_ino != image.inode
    except OSError:
        is_other = True
    if is_other:
        raise EtraceError(f"{image.path} changed meanwhile", "run the command again")


def is_own(image: Image) -> bool:
    """Return whether a database is this user's: another's may name files for this one to read."""
    try:
        check_owner(image)
    except EtraceError:
        return False
    return True


def _files(image: Image) -> Iterator[Path]:
    stem = image.path.name.removesuffix(".img")
    files = name_files(image.path.with_name(stem))
    yield from (image.path, files.trace, *files.sources.values())
    yield from map(Path, image.attributes.get("traces") or {})


def _check_owner(path: Path, refused: tuple[str, str]) -> None:
    try:
        status = path.stat()
    except (FileNotFoundError, ValueError):
        return
    except OSError as error:
        raise EtraceError(f"{path}: {error.strerror}", "copy the database") from error
    allowed = {os.geteuid(), 0} if path.is_dir() else {os.geteuid()}
    if status.st_uid not in allowed:
        raise EtraceError(f"{path} belongs to another user: {refused[0]}", refused[1])


def is_captured(image: Image) -> bool:
    """Return whether this user captured the build of a database on this machine."""
    return marks.is_marked(image.path)
