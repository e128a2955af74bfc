# SPDX-License-Identifier: Apache-2.0
"""Where the files of a capture go, and that an older trace there is not lost."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from etrace.errors import CaptureError

TRACE = ".nfsdb"
STATS = ".nfsdb.stats"
#: what an older trace in the same directory is renamed to
OLD_SUFFIX = ".old"


def is_being_written(trace: Path, dir_fd: int | None = None) -> bool:
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


def prepare(directory: Path) -> tuple[Path, Path, bool]:
    """Make `directory` ready for a capture: (trace, stats, whether an older trace was put aside).

    CaptureError when nothing can be written there.
    """
    try:
        directory = directory.absolute()
        directory.mkdir(parents=True, exist_ok=True)
        trace, stats = directory / TRACE, directory / STATS
        if trace.exists() and not trace.is_file():
            raise CaptureError(f"{trace}: not a regular file", "remove it, or give -o")
        aside = trace.exists()
        if aside and is_being_written(trace):
            raise CaptureError(
                f"{trace}: another capture is writing it", "give this one a directory with -o"
            )
        for path in (trace, stats):
            if path.exists():
                path.replace(path.with_name(path.name + OLD_SUFFIX))
    except OSError as error:
        raise CaptureError(
            f"{error.filename or directory}: {error.strerror}",
            "give a directory you can write to with -o",
        ) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise CaptureError(f"{directory}: not writable", "give another directory with -o")
    return trace, stats, aside
