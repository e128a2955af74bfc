# SPDX-License-Identifier: Apache-2.0
"""Output that is compressed by the name of its file: .gz or .zst."""

from __future__ import annotations

import contextlib
import gzip
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from etrace.errors import EtraceError


@contextlib.contextmanager
def packed(path: Path | None, stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield a stream whose content goes to `stream` as the suffix of `path` says. EtraceError."""
    if path is not None and path.suffix == ".gz":
        # no name and no time: the same content gives the same file
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as file:
            whole: Any = file
            yield whole
    elif path is not None and path.suffix == ".zst":
        with _zstd(path, stream) as pipe:
            yield pipe
    else:
        yield stream


@contextlib.contextmanager
def _zstd(path: Path, stream: BinaryIO) -> Iterator[Any]:
    stream.flush()
    try:
        child = subprocess.Popen(["zstd", "-q", "-c"], stdin=subprocess.PIPE, stdout=stream)
    except FileNotFoundError as error:
        raise EtraceError(
            f"{path}: the command zstd is missing", "install the package zstd, or name a .gz file"
        ) from error
    assert child.stdin is not None  # asked for
    try:
        yield child.stdin
        child.stdin.close()
    except BaseException:
        child.kill()
        raise
    finally:
        status = child.wait()
    if status:
        raise EtraceError(f"{path}: zstd failed with status {status}", "is the disk full?")
