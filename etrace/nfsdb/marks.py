# SPDX-License-Identifier: Apache-2.0
"""Which traces and databases this user made on this machine: a mark outside of them.

Owning a file is not having written it: a trace that was sent, downloaded or imported is data of a
stranger, whose words and directories nobody wants to hand to make. So every capture leaves a mark
in the user's state directory ($XDG_STATE_HOME, else ~/.local/state: etrace/captured/MACHINE), and
what is made of marked files alone is marked in turn. A mark is an empty file of one of two names:

    file-DEVICE-INODE-SIZE-CTIME    that file, unchanged: only root sets the time of a change
    sha256-SIZE-DIGEST              a file of that content, copied or moved

The tracers, which are in C, leave the first one. Who first reads such a file replaces it by the
other: a medium that is mounted later may have a file of the same numbers.

Every `etrace run` imports this module, and opens the marks with the rights of the owner of its
trace, who may not read where Python's library is.
"""

from __future__ import annotations

import os
import stat

from libetrace.core.folders import open_folder
from libetrace.core.hashes import rapid_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: below the state directory
STEPS = ("etrace", "captured")
ROOT = 0
MODE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: the oldest marks go when there are more
MAX_MARKS = 8192
BLOCK_BYTES = 1 << 20


def _state_directory(home: str | None) -> str:
    own = os.environ.get("XDG_STATE_HOME", "")
    if home is None and own.startswith("/"):
        return own
    return os.path.join(home or os.path.expanduser("~"), ".local", "state")


def _machine() -> str:
    """Return a name of this machine; not its id, which programs shall keep to themselves."""
    try:
        with open("/etc/machine-id", "rb") as stream:
            known = stream.read(64).strip()
    except OSError:
        known = b""
    return f"{rapid_hash(b'etrace marks ' + (known or os.uname().nodename.encode())):016x}"


def open_marks(home: str | None = None, *, make: bool = False) -> int | None:
    """Open the directory of marks; None without one, or when others may write there.

    `home`: of the user for whom a capture is made, whose rights this process has now.
    """
    try:
        at = open_folder(_state_directory(home), make=make)
    except OSError:
        return None
    try:
        for name in (*STEPS, _machine()):
            if make and not _is_there(name, at):
                os.mkdir(name, MODE, dir_fd=at)
            below = os.open(name, DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        status = os.fstat(at)
    except OSError:
        os.close(at)
        return None
    if status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE:
        return at
    os.close(at)
    return None


def _is_there(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _name_of(status: os.stat_result) -> str:
    """Return the name of the mark of one file. native/capture/output.c makes the same."""
    return f"file-{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_ctime_ns}"


def _put(name: str, at: int) -> None:
    os.close(os.open(name, NEW, 0o600, dir_fd=at))


def _prune(at: int) -> None:
    names = os.listdir(at)
    if len(names) <= MAX_MARKS:
        return
    times = {}
    for name in names:
        try:
            times[name] = os.stat(name, dir_fd=at, follow_symlinks=False).st_mtime_ns
        except FileNotFoundError:
            continue  # another process does the same
    for name in sorted(times, key=times.__getitem__)[: len(times) - MAX_MARKS // 2]:
        try:
            os.unlink(name, dir_fd=at)
        except FileNotFoundError:
            continue


def mark_capture(trace: os.stat_result, home: str | None = None) -> None:
    """Mark a trace that this process has captured; nothing where no mark can be left."""
    if (at := open_marks(home, make=True)) is None:
        return
    try:
        _put(_name_of(trace), at)
        _prune(at)
    except OSError:
        return  # a full disk: the capture is right all the same
    finally:
        os.close(at)


def mark(path: str | Path) -> None:
    """Mark a file that this process has made of marked ones, also by its content."""
    from libetrace.core.regular_file import open_regular

    if (at := open_marks(make=True)) is None:
        return
    try:
        with open(open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            digest = _digest(stream.fileno())
        _put(f"sha256-{status.st_size}-{digest}", at)
        if _is_there(_name_of(status), at):
            os.unlink(_name_of(status), dir_fd=at)
        _prune(at)
    except OSError:
        return
    finally:
        os.close(at)


def is_marked(path: str | Path) -> bool:
    """Return whether this user made this file here, as it is now."""
    from libetrace.core.regular_file import open_regular

    if (at := open_marks()) is None:
        return False
    try:
        with open(open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            if _is_there(_name_of(status), at):
                return True
            prefix = f"sha256-{status.st_size}-"
            known = {name for name in os.listdir(at) if name.startswith(prefix)}
            return bool(known) and prefix + _digest(stream.fileno()) in known
    except OSError:
        return False
    finally:
        os.close(at)


def keep_all(paths: Sequence[str]) -> bool:
    """Return whether all these files are marked; new captures are marked by their content then."""
    return bool(paths) and all(map(_keep, paths))


def _keep(path: str) -> bool:
    """See keep_all(); the content is read once."""
    if (at := open_marks()) is None:
        return False
    try:
        is_new = _is_there(_name_of(os.stat(path)), at)
    except OSError:
        return False
    finally:
        os.close(at)
    if not is_new:
        return is_marked(path)
    mark(path)
    return True


def _digest(fd: int) -> str:
    from hashlib import sha256

    found = sha256()
    at = 0
    while block := os.pread(fd, BLOCK_BYTES, at):
        found.update(block)
        at += len(block)
    return found.hexdigest()
