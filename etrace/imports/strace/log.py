# SPDX-License-Identifier: Apache-2.0
"""Logs of strace that somebody recorded -> a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from etrace.errors import EtraceError
from etrace.imports.strace.clock import Clock
from etrace.imports.strace.convert import Converted, Converter
from etrace.imports.strace.paths import Here, Lexical
from etrace.imports.strace.sources import (
    HEAD_BYTES,
    Log,
    Merge,
    Reading,
    find,
    first_directory,
    opened,
    pid_of,
)

__all__ = ["import_log"]


def import_log(
    names: Sequence[str], stream: BinaryIO, *, directory: bytes | None = None, is_here: bool = False
) -> Converted:
    """Write the trace of a log: one file, or those of `strace -ff`. EtraceError, OSError.

    `directory` is where strace was started; without it -y must show it. With `is_here` links are
    looked up in this machine's file system.
    """
    files = find(names)
    reading = Reading()
    with opened(files) as streams:
        begin = directory or _directory(streams)
        if begin is None:
            raise EtraceError(
                f"{files[0]}: does not tell in which directory strace was started",
                "name it: --cwd DIR (strace -y would show it)",
            )
        logs = [
            Log(name, log, pid_of(name) if len(files) > 1 else 0, Clock(0, reading.lacks))
            for name, log in streams.items()
        ]
        resolver = Here() if is_here else Lexical()
        if len(logs) == 1:
            converter = Converter(stream, begin, resolver=resolver, reading=reading)
            converter.feed(logs[0].lines(reading))
        else:
            merge = Merge(logs, reading)
            converter = Converter(
                stream, begin, resolver=resolver, reading=reading, on_fork=merge.begin
            )
            converter.feed(merge)
        return converter.finish()


def _directory(streams: dict[str, BinaryIO]) -> bytes | None:
    """Return the directory in which the first process began, if its file shows it."""
    if len(streams) == 1:
        (stream,) = streams.values()
        peek = getattr(stream, "peek", None)
        return first_directory(peek(HEAD_BYTES)) if peek else None
    found = (_begin(stream) for stream in streams.values())
    return next((each for each in found if each is not None), None)


def _begin(stream: BinaryIO) -> bytes | None:
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    return first_directory(head)
