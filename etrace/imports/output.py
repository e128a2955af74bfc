# SPDX-License-Identifier: Apache-2.0
"""Where an imported trace goes: it appears whole or not at all, and an older trace is kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from libetrace.core.rights import followed, give_away, narrow, opened_folder
from libetrace.image.file import replacing

from etrace.errors import EtraceError

TRACE = ".nfsdb"
OLD_SUFFIX = ".old"
PRIVATE = 0o600


def name_trace(output: Path) -> Path:
    """Return the file of a trace: `output`, or `.nfsdb` in that directory. EtraceError."""
    trace = output / TRACE if output.is_dir() else output
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
    """Rename an older trace and the files that belong to it; tell whether there was one."""
    is_there = trace.exists()
    with opened_folder(trace.parent) as folder:
        for suffix in ("", *suffixes):
            name = f"{trace.name}{suffix}"
            with contextlib.suppress(FileNotFoundError):
                os.rename(name, f"{name}{OLD_SUFFIX}", src_dir_fd=folder, dst_dir_fd=folder)
    return is_there
