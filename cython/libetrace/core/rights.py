# SPDX-License-Identifier: Apache-2.0
"""Who may read a new file, and where it goes.

Nobody may read it who may not read all that it is made of; nobody else chooses its place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

ROOT = 0
PRIVATE = 0o600
READ_AND_WRITE = 0o666
#: limit of symbolic links on a path, from path_resolution(7)
MAX_LINKS = 40


def narrow(fd: int, models: Sequence[Path]) -> None:
    """Take from a new file the rights that one of `models` does not give. OSError.

    What root makes of nothing that tells is root's alone: programs get secrets as arguments and in
    their environment.
    """
    mode = os.fstat(fd).st_mode & READ_AND_WRITE
    if not models and os.geteuid() == ROOT:
        mode &= PRIVATE
    for model in models:
        mode &= model.stat().st_mode
    os.fchmod(fd, mode)


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

    Links of this user and of root are followed. That of anybody else could lead to any file that
    this user may write; the kernel stops an open(2) there in sticky directories only.
    """
    for _ in range(MAX_LINKS):
        path = path.parent.resolve() / path.name
        try:
            status = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(status.st_mode):
            return path
        if status.st_uid not in (ROOT, os.geteuid()):
            text = "it is a link of another user, which is not followed"
            raise PermissionError(errno.EACCES, text, str(path))
        if _is_device_or_pipe(path):  # /proc/self/fd/1: its text `pipe:[123]` is no name
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
