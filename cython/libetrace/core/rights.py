# SPDX-License-Identifier: Apache-2.0
"""Who may read a new file, and where it goes.

Nobody may read it who may not read all that it is made of; nobody else chooses its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from libetrace.core.folders import (
    LOOK,
    MAX_LINKS,
    ROOT,
    is_link,
    is_of_proc,
    open_folder,
    refuse_foreign,
)

PRIVATE = 0o600
READ_AND_WRITE = 0o666


def narrow(fd: int, models: Sequence[Path]) -> None:
    """Take from a new file the rights that one of `models` does not give. OSError.

    What root makes of nothing that tells is root's alone: programs get secrets as arguments and in
    their environment. Another group than that of a model gets what all others get.
    """
    own = os.fstat(fd)
    mode = own.st_mode & READ_AND_WRITE
    if not models and os.geteuid() == ROOT:
        mode &= PRIVATE
    for status in (model.stat() for model in models):
        is_same = status.st_gid == own.st_gid
        mode &= (
            status.st_mode if is_same else status.st_mode & 0o606 | (status.st_mode & 0o006) << 3
        )
    os.fchmod(fd, mode)


def may_own(owner: int, models: Sequence[Path]) -> bool:
    """Tell whether a user may own what is made of `models`: they can read each. OSError."""
    found = [model.stat() for model in models]
    return all(owner == status.st_uid or status.st_mode & stat.S_IROTH for status in found)


def give_away(fd: int, models: Sequence[Path]) -> None:
    """Give what root makes to the owner that all of `models` have. OSError.

    A file derived from files of several owners belongs to root: none of them may read the others'
    data.
    """
    if not models or os.geteuid() != ROOT:
        return
    owners = {(status.st_uid, status.st_gid) for status in (model.stat() for model in models)}
    os.fchown(fd, *(owners.pop() if len(owners) == 1 else (ROOT, ROOT)))


def _is_device_or_pipe(link: Path) -> bool:
    """Whether a link leads to what is written to as it is."""
    try:
        mode = link.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def followed(path: Path) -> Path:
    """Return where a name leads under which a file is to be written. OSError.

    Links are followed as `open_folder` does it, which holds for the directories on the way too.
    """
    if not path.name:  # `.`
        return path.absolute()
    for _ in range(MAX_LINKS):
        try:
            with opened_folder(path.parent, file=path) as folder:
                text = _link_text(folder, path)
        except FileNotFoundError:
            return path
        if text is None:
            return path
        path = path.parent / text
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _link_text(folder: int, path: Path) -> str | None:
    """Return the text of a link, None for anything else."""
    fd = os.open(path.name or ".", LOOK, dir_fd=folder)
    try:
        if not is_link(fd) or (is_of_proc(fd) and _is_device_or_pipe(path)):
            return None  # the text of /proc/self/fd/1, `pipe:[123]`, is no name
        refuse_foreign(fd)
        return os.readlink("", dir_fd=fd)
    except PermissionError as error:
        raise PermissionError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened_folder(path: Path, *, make: bool = False, file: Path | None = None) -> Iterator[int]:
    """Yield the descriptor of `open_folder`. OSError names `file`, unless a link is refused."""
    try:
        folder = open_folder(path, make=make)
    except PermissionError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(file or path)) from error
    try:
        yield folder
    finally:
        os.close(folder)
