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


def _is_being_written(trace: Path) -> bool:
    """Whether a tracer holds the lock of its trace (etrace-ptrace takes it, flock(2))."""
    with trace.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
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
        if aside and _is_being_written(trace):
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
