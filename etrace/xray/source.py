# SPDX-License-Identifier: Apache-2.0
"""Opens a log: a file (mapped when nobody else may cut it), standard input, gzip or zstd.

A compressed log is unpacked in memory (etrace.parse.unpacking), damaged data as far as it goes. Its
bytes are all that the readers of libetrace.xray want.
"""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path
from typing import Any

from libetrace.core.ownership import may_be_mapped

from etrace.errors import EtraceError
from etrace.parse.inputs import STDIN, ZSTD_MAGIC
from etrace.parse.unpacking import Salvaged, gunzip, unzstd
from etrace.xray.warnings import RawProblem

GZIP_MAGIC = b"\x1f\x8b"


def damage(data: Any) -> list[RawProblem]:
    """Return what unpacking a log cost: nothing, or a problem at the end of what is left."""
    return [("archive-damaged", len(data), 0, 0)] if isinstance(data, Salvaged) else []


def _unpack(data: bytes | mmap.mmap, name: str) -> bytes | mmap.mmap:
    if data[:2] == GZIP_MAGIC:
        return gunzip(memoryview(data), name)
    if data[:4] == ZSTD_MAGIC:
        return unzstd(memoryview(data), name)
    return data


def open_log(path: str | os.PathLike[str]) -> bytes | mmap.mmap:
    """Return the bytes of a log; `-` is standard input. EtraceError when it cannot be read."""
    if os.fspath(path) == STDIN:
        return _unpack(sys.stdin.buffer.read(), "standard input")
    path = Path(path)
    try:
        with path.open("rb") as stream:
            if not path.is_file():  # a pipe, as of `<(...)`
                return _unpack(stream.read(), str(path))
            if not may_be_mapped(stream.fileno()) or os.fstat(stream.fileno()).st_size == 0:
                return _unpack(stream.read(), str(path))
            return _unpack(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), str(path))
    except OSError as error:
        raise EtraceError(f"cannot read {path}: {error.strerror}", "name an XRay log") from error
