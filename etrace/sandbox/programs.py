# SPDX-License-Identifier: Apache-2.0
"""Which programs may run on the word of data: those that only root can have installed.

The author of a database chooses the programs, names and options in it. So a program is known by the
name of its own file (never by argv[0], nor by a link), and that file and every directory above it,
links followed, belong to root and can be written by nobody else. The file that was looked at is
opened, and that descriptor is executed: no name is looked up twice.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

#: the permitted owner of programs that run
OWNERS = (0,)
WRITABLE = stat.S_IWGRP | stat.S_IWOTH
#: of an ELF file; a script is run by whatever its first line names
MAGIC = b"\x7fELF"


class UntrustedError(Exception):
    """A path that must not be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that may run: its own path, and an open descriptor of its file."""

    path: Path
    fd: int


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


def changeable(path: Path, owners: Collection[int]) -> tuple[Path, bool] | None:
    """Return the first of a path and those above it that others than its owners can change.

    With it, whether it belongs to somebody else. The path has no links. OSError.
    """
    for each in (path, *path.parents):
        status = each.stat()
        if status.st_uid not in owners:
            return each, True
        if status.st_mode & WRITABLE:
            return each, False
    return None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Program]:
    """Open the file of a program whose path is trusted. UntrustedError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UntrustedError(f"{path}: {error.strerror}") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & stat.S_IXUSR:
            raise UntrustedError(f"{path}: not a program")
        if status.st_uid not in OWNERS or status.st_mode & WRITABLE:
            raise UntrustedError(f"{path} changed meanwhile")
        if os.pread(fd, len(MAGIC), 0) != MAGIC:
            raise UntrustedError(f"{path}: a script, which may run anything")
        yield Program(path, fd)
    finally:
        os.close(fd)
