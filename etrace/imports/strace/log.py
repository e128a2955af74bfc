# SPDX-License-Identifier: Apache-2.0
"""Logs of strace that somebody recorded -> a trace.

A log may have wall-clock times (-ttt), times of the day (-t, -tt), times since the line before (-r)
or none. Then only their order and distance mean something; they never decrease for a process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

from etrace.errors import EtraceError
from etrace.imports.strace.convert import Converted, Converter
from etrace.imports.strace.paths import Here, Lexical, Resolver
from etrace.imports.strace.sources import (
    HEAD_BYTES,
    Clock,
    Log,
    Merge,
    Reading,
    allow_files,
    find,
    first_directory,
    open_log,
    pid_of,
)

__all__ = ["import_log"]


def import_log(
    names: Sequence[str],
    stream: BinaryIO,
    *,
    directory: bytes | None = None,
    is_here: bool = False,
    most: Callable[[int], int] | None = None,
) -> Converted:
    """Write the trace of a log: one file, or those of `strace -ff`. EtraceError, OSError.

    `directory` is where strace was started; without it -y must show it. With `is_here` links are
    looked up in this machine's file system. `most` returns how many bytes may be written for those
    that were read.
    """
    files = find(names)
    reading = Reading()
    resolver = Here() if is_here else Lexical()
    limit = None if most is None else lambda: most(reading.n_bytes)
    if len(files) > 1:
        return _import_files(files, stream, directory, resolver, reading, limit)
    (name,) = files
    with open_log(name, HEAD_BYTES) as log:
        begin = directory or _required(first_directory(_head(log)), name)
        converter = Converter(stream, begin, resolver=resolver, reading=reading, limit=limit)
        converter.feed(Log(name, log, 0, Clock(0, reading.lacks)).lines(reading))
        return converter.finish()


def _import_files(
    files: Sequence[str],
    stream: BinaryIO,
    directory: bytes | None,
    resolver: Resolver,
    reading: Reading,
    limit: Callable[[], int] | None,
) -> Converted:
    """Write the trace of the files of -ff."""
    allow_files(len(files))
    found = map(_begin, files)
    begin = directory or _required(next((each for each in found if each), None), files[0])
    logs = [Log(name, None, pid_of(name), Clock(0, reading.lacks)) for name in files]
    merge = Merge(logs, reading)
    converter = Converter(
        stream, begin, resolver=resolver, reading=reading, on_fork=merge.begin, limit=limit
    )
    converter.feed(merge)
    return converter.finish()


def _required(directory: bytes | None, name: str) -> bytes:
    """Return the directory in which the first process began. EtraceError when no file shows it."""
    if directory is None:
        raise EtraceError(
            f"{name}: does not say in which directory strace was started",
            "name it: --cwd DIR (strace -y would show it)",
        )
    return directory


def _head(stream: BinaryIO) -> bytes:
    """Return the beginning of a stream, which is still to be read."""
    peek = getattr(stream, "peek", None)
    return bytes(peek(HEAD_BYTES)) if peek else b""


def _begin(name: str) -> bytes | None:
    with open_log(name) as stream:
        return first_directory(stream.read(HEAD_BYTES))
