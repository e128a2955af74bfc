# SPDX-License-Identifier: Apache-2.0
"""The files of a capture: where they go, and who owns them."""

from __future__ import annotations

import fcntl
import os
import stat

from libetrace.core.folders import open_folder

from etrace.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from etrace.capture.kmod.system.owner import Owner

TRACE = ".nfsdb"
STATS = ".nfsdb.stats"
#: suffix of an older trace in the same directory after its renaming
OLD_SUFFIX = ".old"
#: files that belong to a trace, by suffix; they are renamed with it
SIDE_SUFFIXES = (".stats", ".rsp", ".accesses", ".hashes")
#: the contents of response files, beside the trace
RESPONSES_SUFFIX = ".rsp"
ROOT = 0


def side_files(trace: str | Path) -> list[str]:
    """Name the files that belong to a trace."""
    return [f"{trace}{suffix}" for suffix in SIDE_SUFFIXES]


def aside_message(name: str) -> str:
    """Return the message about an older trace that was renamed."""
    return f"the older trace is now {name}{OLD_SUFFIX}"


def is_being_written(trace: str | Path, dir_fd: int | None = None) -> bool:
    """Whether a tracer holds the lock of its trace (every backend takes it, flock(2)).

    A relative path is one below the directory of `dir_fd`.
    """
    fd = os.open(trace, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def owner_of(directory: str) -> Owner | None:
    """Return the owner of files in `directory`: the caller of sudo, if the directory is theirs.

    None is the user of this process. UsageError when sudo's variables name no user.
    """
    if os.geteuid() != ROOT or not any(name.endswith(("_UID", "_USER")) for name in os.environ):
        return None
    from etrace.capture.kmod.system.owner import invoking

    owner = invoking(os.environ)
    at = os.path.abspath(directory)
    while not os.path.isdir(at) and at != os.path.dirname(at):
        at = os.path.dirname(at)
    return owner if owner.uid != ROOT and os.stat(at).st_uid == owner.uid else None


def prepare(directory: str, owner: Owner | None = None) -> tuple[str, int]:
    """Make `directory` ready for a capture; return the name of the trace in it, and its descriptor.

    An older trace stays until the command runs. CaptureError when nothing can be written there.
    """
    try:
        if owner is None:
            return _prepare(directory)
        from etrace.capture.kmod.system.owner import acting_as

        with acting_as(owner):
            return _prepare(directory)
    except OSError as error:
        raise CaptureError(
            f"{error.filename or directory}: {error.strerror}",
            "give a directory you can write to with -o",
        ) from error


def open_marks(owner: Owner | None) -> int | None:
    """Open the directory for the mark of a capture (etrace/nfsdb/marks.py); None without one."""
    from etrace.nfsdb import marks

    if owner is None:
        return marks.open_marks(make=True)
    from etrace.capture.kmod.system.owner import acting_as, home_of

    with acting_as(owner):
        return marks.open_marks(home_of(owner), make=True)


def _prepare(directory: str) -> tuple[str, int]:
    if not os.path.isabs(directory):
        os.getcwd()  # it may be gone
    folder = open_folder(directory, make=True)
    trace = os.path.normpath(os.path.join(directory, TRACE))
    try:
        mode = os.stat(TRACE, dir_fd=folder).st_mode
    except OSError:  # a link to nothing, or to what the owner cannot reach, is renamed
        mode = 0
    if mode and not stat.S_ISREG(mode):
        raise CaptureError(f"{trace}: not a regular file", "remove it, or give -o")
    if mode and is_being_written(TRACE, folder):
        raise CaptureError(
            f"{trace}: another capture is writing it", "give another directory with -o"
        )
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
        raise CaptureError(f"{directory}: not writable", "give another directory with -o")
    return trace, folder
