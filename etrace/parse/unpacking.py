# SPDX-License-Identifier: Apache-2.0
"""Compressed data -> its bytes in memory, in pieces and within limits.

A file of some kB can hold many GB, so this module limits the output. FREE_BYTES are always allowed,
above that MAX_RATIO times the input (traces, logs and debug information have ratios of 2 to 12:
decision 21), and at most half of this machine's memory. `allowing(n)` sets the limit to n bytes.
Formats: gzip (RFC 1952), zlib (RFC 1950), xz, zstd (RFC 8878; by the command zstd).
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from libetrace.trace.source import Source

from etrace.errors import EtraceError

if TYPE_CHECKING:
    from typing import IO

FREE_BYTES = 64 << 20
MAX_RATIO = 100
PIECE_BYTES = 1 << 20
XZ_MEMORY_BYTES = 256 << 20
#: of zlib: the largest window with a head of gzip, or of zlib itself
GZIP_BITS, ZLIB_BITS = 31, 15
ZSTD_HINT = "install the command zstd (package zstd), or unpack it first"
MEGA = 1e6
MOST = 1 << 62  # the largest size in C
OPTION = "--max-unpacked"

_allowed: list[int] = []  # by allowing(), the innermost last


class TooLargeError(EtraceError):
    """Compressed data unpacks to more than the limit."""

    def __init__(self, name: str, n_bytes: int) -> None:
        super().__init__(
            f"{name}: unpacked it takes more than {n_bytes / MEGA:.0f} MB",
            f"if you trust the file, raise the limit: {OPTION} SIZE, for example 8G",
        )


class Salvaged(bytes):
    """The data before the damage in damaged compressed data."""

    __slots__ = ()


# ---- how much ----


@contextmanager
def allowing(n_bytes: int | None) -> Iterator[None]:
    """Set the limit to `n_bytes` inside the block; None changes nothing."""
    if n_bytes is None:
        yield
        return
    _allowed.append(n_bytes)
    try:
        yield
    finally:
        _allowed.pop()


def most(n_packed: int) -> int:
    """Return the limit in bytes for `n_packed` compressed bytes."""
    if _allowed:
        return min(_allowed[-1], MOST)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(max(FREE_BYTES, MAX_RATIO * n_packed), memory // 2)


def most_written(n_read: int) -> int:
    """Return the limit in bytes for what is written to a file from `n_read` bytes of a log."""
    return min(_allowed[-1], MOST) if _allowed else max(FREE_BYTES, MAX_RATIO * n_read)


def _collect(pieces: Iterable[bytes], n_packed: int, name: str, n_wanted: int = MOST) -> bytes:
    limit = most(n_packed)
    out = io.BytesIO()
    for piece in pieces:
        if out.tell() >= n_wanted:
            break
        if out.tell() + len(piece) > limit:
            raise TooLargeError(name, limit)
        out.write(piece)
    return out.getvalue()[:n_wanted]


# ---- gzip, zlib and xz ----


def _out_of(member: Any, data: bytes) -> Iterator[bytes]:
    """Yield the output of one piece of input, in pieces."""
    while data and not member.eof:
        yield member.decompress(data, PIECE_BYTES)
        data = member.unconsumed_tail


class _Members:
    """zlib data, or gzip members one after the other with null bytes between them."""

    def __init__(self, data: bytes | memoryview, bits: int) -> None:
        self._data = memoryview(data)
        self._bits = bits
        self.is_damaged = True

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes up to the end or the damage; `is_damaged` says which."""
        import zlib  # noqa: PLC0415  seldom needed

        member = None
        try:
            for start in range(0, len(self._data), PIECE_BYTES):
                data = bytes(self._data[start : start + PIECE_BYTES])
                while data := data if member else data.lstrip(b"\0"):
                    member = member or zlib.decompressobj(self._bits)
                    yield from _out_of(member, data)
                    data = member.unused_data
                    if member.eof:
                        member = None
            if member is not None:
                yield member.flush()
            self.is_damaged = member is not None and not member.eof
        except zlib.error:
            pass


def inflate(data: bytes | memoryview, name: str, n_bytes: int) -> bytes:
    """Unpack at most `n_bytes` of zlib data, up to any damage. TooLargeError."""
    return _collect(_Members(data, ZLIB_BITS).pieces(), len(data), name, n_bytes)


def gunzip(data: bytes | memoryview, name: str) -> bytes:
    """Unpack gzip data; Salvaged when it is damaged. EtraceError when nothing can be unpacked."""
    members = _Members(data, GZIP_BITS)
    out = _collect(members.pieces(), len(data), name)
    if not members.is_damaged:
        return out
    if not out:
        raise EtraceError(f"{name}: damaged gzip data", "copy the log again")
    return Salvaged(out)


def _xz_pieces(data: bytes) -> Iterator[bytes]:
    import lzma  # noqa: PLC0415  seldom needed

    while data:
        stream = lzma.LZMADecompressor(lzma.FORMAT_AUTO, XZ_MEMORY_BYTES)
        while not stream.eof:
            if not data and stream.needs_input:
                raise lzma.LZMAError("cut off")
            yield stream.decompress(data, PIECE_BYTES)
            data = b""
        data = stream.unused_data.lstrip(b"\0")


def unxz(data: bytes, name: str) -> bytes:
    """Unpack xz data. TooLargeError; lzma.LZMAError when it is damaged."""
    return _collect(_xz_pieces(data), len(data), name)


# ---- zstd ----


@contextmanager
def _zstd(packed: IO[bytes] | int, name: str) -> Iterator[Any]:
    """Run the command over an open file; it is killed when the block ends early."""
    import shutil  # noqa: PLC0415  slow to import, seldom needed
    import subprocess  # noqa: PLC0415

    command = shutil.which("zstd")
    if command is None:
        raise EtraceError(
            f"{name} is compressed with zstd, and the zstd command is not installed", ZSTD_HINT
        )
    with subprocess.Popen(
        [command, "-dcq"], stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def unzstd(data: bytes | memoryview, name: str) -> bytes:
    """Unpack zstd data; Salvaged when it is damaged. EtraceError when nothing can be unpacked."""
    with open(os.memfd_create("packed"), "w+b") as packed:  # noqa: PTH123  a descriptor
        packed.write(data)
        packed.seek(0)
        with _zstd(packed, name) as child:
            out = _collect(iter(lambda: child.stdout.read(PIECE_BYTES), b""), len(data), name)
            message = child.stderr.read().decode(errors="replace").strip()
            status = child.wait()
    if status == 0:
        return out
    if not out:
        raise EtraceError(f"{name}: damaged zstd data: {message}", "copy the log again")
    return Salvaged(out)


def open_zstd(name: str) -> Source:
    """Unpack a trace. EtraceError when it cannot be read, is damaged or too large."""
    try:
        with open(name, "rb") as packed:  # noqa: PTH123  no pathlib for one word
            limit = most(os.fstat(packed.fileno()).st_size)
            with _zstd(packed, name) as child:
                source = Source.from_fd(child.stdout.fileno(), limit)
                message = child.stderr.read().decode(errors="replace").strip()
                status = child.wait()
    except OverflowError as error:
        raise TooLargeError(name, limit) from error
    except OSError as error:
        raise EtraceError(
            f"cannot read {name}: {error.strerror}", "name a trace that you can read"
        ) from error
    if status:
        raise EtraceError(f"cannot decompress {name}: zstd failed: {message}", "copy it again")
    return source
