# SPDX-License-Identifier: Apache-2.0
"""Where a new file goes, and who may read it.

Nobody may read it who may not read all that it is made of; nobody else chooses its place: a
directory to write into becomes a descriptor of it.

Links of this user and of root are followed. That of anybody else could lead to any directory that
this user may write into; the kernel stops that in sticky directories only. Each step is opened
below the one before and looked at then, so no name can be turned in between. What is made through
the descriptor (openat(2), renameat(2)) is in that directory, whatever its name is by then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

TYPE_CHECKING = False  # `etrace run` begins without typing and pathlib
if TYPE_CHECKING:
    from pathlib import Path

ROOT = 0
PRIVATE = 0o600
READ_AND_WRITE = 0o666
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
    with contextlib.suppress(FileExistsError):  # made meanwhile; what it is will be seen
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
    from libetrace.core.regular_file import mount_of  # noqa: PLC0415  slow, seldom needed

    mount = mount_of(link)
    owners = {os.fstat(link).st_uid, mount.mounter if mount else ROOT}
    if not owners <= {ROOT, os.geteuid()}:
        raise PermissionError(errno.EACCES, FOREIGN)


# ---- rights ----


def narrow(fd: int, models: Sequence[Path]) -> None:
    """Take from a new file the rights that one of `models` does not give. OSError.

    What root makes without a model is root's alone: programs get secrets as arguments and in
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
    """Return whether a user may own what is made of `models`: they can read each. OSError."""
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
    """Whether a link leads to what is written to directly."""
    try:
        mode = link.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def followed(path: Path) -> Path:
    """Return where a name leads under which a file will be written. OSError.

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
            return None  # the text of /proc/self/fd/1, `pipe:[123]`, is not a name
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
