# SPDX-License-Identifier: Apache-2.0
"""A directory to write into -> a descriptor of it, which nobody else has chosen.

Links of this user and of root are followed. That of anybody else could lead to any directory that
this user may write into; the kernel stops that in sticky directories only. Each step is opened
below the one before and looked at then, so no name can be turned in between. What is made through
the descriptor (openat(2), renameat(2)) is in that directory, whatever its name is by then.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

ROOT = 0
#: limit of symbolic links on a path, from path_resolution(7)
MAX_LINKS = 40
#: what is there, without opening it or following a link
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
ENTER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
FOREIGN = "it is a link of another user, which is not followed"


def open_folder(path: str | Path, *, make: bool = False) -> int:
    """Open a directory, which is made with those above it if `make`; OSError names the path."""
    text = os.fspath(path)
    at = os.open("/" if text.startswith("/") else ".", ENTER)
    steps = text.split("/")[::-1]
    n_links = 0
    try:
        while steps:
            name = steps.pop()
            if name in ("", "."):
                continue
            step = _open_step(at, name, make)
            try:
                if is_link(step):
                    n_links += 1
                    if n_links > MAX_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    refuse_foreign(step)
                    below, rest = _lead(at, name, step)
                    steps += rest[::-1]
                else:
                    below, step = step, -1
                if below >= 0:
                    os.close(at)
                    at = below
            finally:
                if step >= 0:
                    os.close(step)
        return os.open(".", ENTER, dir_fd=at)  # a directory, or an error
    except OSError as error:
        raise OSError(error.errno, error.strerror, text) from error
    finally:
        os.close(at)


def _open_step(at: int, name: str, make: bool) -> int:
    try:
        return os.open(name, LOOK, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # made meanwhile; what it is will be seen
        os.mkdir(name, dir_fd=at)
    return os.open(name, LOOK, dir_fd=at)


def _lead(at: int, name: str, link: int) -> tuple[int, list[str]]:
    """Return where a link leads to: a directory to go on in (-1: the same), and further steps."""
    if is_of_proc(link):
        return os.open(name, ENTER, dir_fd=at), []
    text = os.readlink("", dir_fd=link)
    return os.open("/", ENTER) if text.startswith("/") else -1, text.split("/")


def is_link(fd: int) -> bool:
    """Whether what `LOOK` opened is a symbolic link."""
    return stat.S_ISLNK(os.fstat(fd).st_mode)


def is_of_proc(link: int) -> bool:
    """Whether a link is one of /proc: the kernel knows what it leads to, its text may not."""
    try:
        return os.fstat(link).st_dev == os.stat("/proc").st_dev  # noqa: PTH116
    except OSError:
        return False


def refuse_foreign(link: int) -> None:
    """Raise PermissionError for a link that belongs neither to this user nor to root.

    On a FUSE all belongs to who has mounted it, whatever it says.
    """
    from libetrace.core.mounts import mount_of  # noqa: PLC0415  slow, seldom needed

    mount = mount_of(link)
    owners = {os.fstat(link).st_uid, mount.mounter if mount else ROOT}
    if not owners <= {ROOT, os.geteuid()}:
        raise PermissionError(errno.EACCES, FOREIGN)
