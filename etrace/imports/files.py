# SPDX-License-Identifier: Apache-2.0
"""Logs are read line by line, in bounded memory; a trace appears whole or not at all.

An older trace is kept under another name.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from libetrace.core.folders import followed, give_away, narrow, open_folder, opened_folder
from libetrace.image.file import replacing

from etrace.errors import EtraceError

#: a program gets 6 MB of arguments and environment (execve(2)), which strace -xx shows as 24 MB
MAX_LINE_BYTES = 32 << 20


def lines_of(name: str, stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines with their ends. EtraceError names a line without end."""
    try:
        for number, line in enumerate(iter(partial(stream.readline, MAX_LINE_BYTES), b""), 1):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                raise EtraceError(
                    f"{name}:{number}: expected a line of text, this one has more than "
                    f"{MAX_LINE_BYTES >> 20} MB",
                    "is it the log, and not another file?",
                )
            yield line
    except OSError as error:  # of reading: what is done with a line raises elsewhere
        raise EtraceError(
            f"cannot read {name}: {error.strerror}", "name a log that you can read"
        ) from error


TRACE = ".nfsdb"
OLD_SUFFIX = ".old"
PRIVATE = 0o600


@contextlib.contextmanager
def making(folder: Path) -> Iterator[None]:
    """Make a directory, unless it is there; remove it again when the block fails. OSError."""
    is_new = not os.path.lexists(folder)
    os.close(open_folder(folder, make=True))
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):  # somebody else's file is in it
                folder.rmdir()
        raise


def name_trace(output: Path) -> Path:
    """Return the file of a trace in a directory. EtraceError, OSError."""
    trace = output / TRACE
    if trace.exists() and not trace.is_file():
        raise EtraceError(f"{trace}: not a regular file", "remove it, or give -o")
    return followed(trace)


@contextlib.contextmanager
def writing(path: Path, models: Sequence[Path]) -> Iterator[BinaryIO]:
    """Yield a stream to a new file for its owner alone, who can read all of `models`. OSError."""
    with replacing(path, is_new=True) as stream:
        os.fchmod(stream.fileno(), PRIVATE)
        narrow(stream.fileno(), models)
        give_away(stream.fileno(), models)
        yield stream


def put_aside(trace: Path, suffixes: Sequence[str]) -> bool:
    """Rename an older trace and the files that belong to it; return whether there was one."""
    is_there = trace.exists()
    with opened_folder(trace.parent) as folder:
        for suffix in ("", *suffixes):
            name = f"{trace.name}{suffix}"
            with contextlib.suppress(FileNotFoundError):
                os.rename(name, f"{name}{OLD_SUFFIX}", src_dir_fd=folder, dst_dir_fd=folder)
    return is_there
