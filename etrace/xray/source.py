# SPDX-License-Identifier: Apache-2.0
"""Opens a log: a file (mapped when nobody else may cut it), standard input, gzip or zstd.

A compressed log is unpacked in memory, damaged compressed data as far as it goes. Its bytes are all
that the readers of libetrace.xray want.
"""

from __future__ import annotations

import gzip
import mmap
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from libetrace.ownership import may_be_mapped

from etrace.errors import EtraceError
from etrace.parse.inputs import STDIN, ZSTD_MAGIC
from etrace.xray.warnings import RawProblem

GZIP_MAGIC = b"\x1f\x8b"
GZIP_BITS = 31  # of zlib: a gzip head, the largest window
PIECE_BYTES = 4096
ZSTD_HINT = "install the command zstd (package zstd), or unpack the log first"


class Salvaged(bytes):
    """What damaged compressed data still held, up to the damage."""

    __slots__ = ()


def damage(data: Any) -> list[RawProblem]:
    """Return what unpacking a log cost: nothing, or a problem at the end of what is left."""
    return [("archive-damaged", len(data), 0, 0)] if isinstance(data, Salvaged) else []


def _inflate(data: bytes | memoryview) -> Salvaged:
    """Unpack gzip members as far as they go."""
    out = bytearray()
    member = zlib.decompressobj(GZIP_BITS)
    try:
        for start in range(0, len(data), PIECE_BYTES):
            piece = bytes(data[start : start + PIECE_BYTES])
            while piece:
                out += member.decompress(piece)
                piece = member.unused_data
                if member.eof:
                    member = zlib.decompressobj(GZIP_BITS)
    except zlib.error:
        pass
    return Salvaged(out)


def _gunzip(data: bytes | memoryview, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        if salvaged := _inflate(data):
            return salvaged
        raise EtraceError(f"{name}: damaged gzip data: {error}", "copy the log again") from error


def unzstd(data: bytes | memoryview, name: str) -> bytes:
    """Unpack zstd data by the command; EtraceError without it, or when the data is damaged."""
    command = shutil.which("zstd")
    if command is None:
        raise EtraceError(f"{name} is compressed with zstd, and there is no zstd here", ZSTD_HINT)
    done = subprocess.run([command, "-dcq"], input=data, capture_output=True, check=False)
    if done.returncode and done.stdout:
        return Salvaged(done.stdout)
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()
        raise EtraceError(f"{name}: damaged zstd data: {text}", "copy the log again")
    return done.stdout


def _unpack(data: bytes | mmap.mmap, name: str) -> bytes | mmap.mmap:
    if data[:2] == GZIP_MAGIC:
        return _gunzip(memoryview(data), name)
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
