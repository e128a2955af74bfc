# SPDX-License-Identifier: Apache-2.0
"""Which programs of a database may run: those that only root can have installed.

The author of a database chooses the programs, names and options in it. So nothing in it is trusted:
the database must be the user's own, the program is known by the name of its file (never by
argv[0]), and that file and every directory above it, links followed, belong to root and can be
written by nobody else. What is run is that resolved path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from libetrace.image.file import Image

from etrace.compilers import tools
from etrace.errors import EtraceError
from etrace.nfsdb.files import name_files

#: the permitted owner of programs that run
OWNERS = (0,)
WRITABLE = stat.S_IWGRP | stat.S_IWOTH


class UntrustedError(Exception):
    """A path that must not be used; the text says why."""


def trusted_path(name: bytes) -> Path:
    """Return the target of a path if only root can change it. UntrustedError."""
    text = os.fsdecode(name)
    try:
        path = Path(text).resolve(strict=True) if name.startswith(b"/") else None
    except (OSError, RuntimeError, ValueError):
        path = None
    if path is None:
        raise UntrustedError(f"{text}: does not exist")
    if (found := changeable(path, OWNERS)) is not None:
        each, is_foreign = found
        why = "does not belong to root" if is_foreign else "can be written by others"
        raise UntrustedError(f"{each} {why}")
    return path


def changeable(
    path: Path, owners: Collection[int], *, allows_sticky: bool = False
) -> tuple[Path, bool] | None:
    """Return the first of a path and those above it that others than its owners can change.

    With it, whether it belongs to somebody else. In a sticky directory nobody can replace what is
    another's. The path has no links. OSError.
    """
    for each in (path, *path.parents):
        status = each.stat()
        if status.st_uid not in owners:
            return each, True
        is_sticky = allows_sticky and status.st_mode & stat.S_ISVTX
        if status.st_mode & WRITABLE and not is_sticky:
            return each, False
    return None


def trusted_compiler(name: bytes) -> Path:
    """Return the file of a compiler that may be run. UntrustedError."""
    path = trusted_path(name)
    if not (stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)):
        raise UntrustedError(f"{path}: not a program")
    tool = tools.load().find_name(os.fsencode(path))
    if tool is None or not tool.settings.get("probe"):
        raise UntrustedError(f"{path}: not a compiler that etrace may run")
    return path


def trusted_directory(name: bytes) -> Path:
    """Return a directory that only root can change. UntrustedError."""
    path = trusted_path(name)
    if not path.is_dir():
        raise UntrustedError(f"{path}: not a directory")
    return path


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
