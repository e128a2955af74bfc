# SPDX-License-Identifier: Apache-2.0
"""Opens a trace in any form: a file, a pipe, a compressed file, a directory of parts."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.trace.source import FIRST_LINE, Source

from etrace.errors import EtraceError
from etrace.nfsdb.build import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "-"
ZSTD_SUFFIX = ".zst"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
TRACE = ".nfsdb"
EVENT_LINE = rb"[^\n]*?\d+,\d+,\d+,\d+!"


def open_trace(inputs: Sequence[str | os.PathLike[str]]) -> tuple[Source, list[str]]:
    """Open a trace made of one or several inputs, merged by time.

    Returns the trace and the names of its parts, in order. `-` is standard input; a directory
    stands for its files. Raises EtraceError when one cannot be read.
    """
    names = [name for given in inputs for name in expand(os.fspath(given))]
    if not names:
        raise EtraceError("no input", "name a .nfsdb file, a directory of parts, or - for stdin")
    if names == [STDIN]:
        return Source.stream(_stdin()), names
    sources = [open_input(name) for name in names]
    return (sources[0] if len(sources) == 1 else Source.merge(sources)), names


def _stdin() -> int:
    """Return the descriptor of standard input. EtraceError when its end can never be read."""
    import fcntl  # noqa: PLC0415  seldom needed

    fd = sys.stdin.fileno()
    access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)
    if access == os.O_WRONLY or (is_pipe and access == os.O_RDWR):
        what = "a pipe" if is_pipe else "a file"
        message = f"standard input is {what} that is open for writing"
        raise EtraceError(message, "give a trace by - < FILE, or a pipe")
    return fd


def natural_key(path: Path) -> list[tuple[int, str]]:
    """Sort key in which part_10 comes after part_9."""
    pieces: list[str] = re.split(r"(\d+)", path.name)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]


def is_trace(path: Path) -> bool:
    """Return whether, by its first bytes, a file is a trace, not stats or a database."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return True  # open_input() reports the error
    return head.startswith((FIRST_LINE, ZSTD_MAGIC)) or re.match(EVENT_LINE, head) is not None


def expand(name: str) -> list[str]:
    """List the files of an input; for a directory, the trace or the parts in it."""
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    if (path / TRACE).is_file():
        return [str(path / TRACE)]
    files = (part for part in path.iterdir() if part.is_file() and is_trace(part))
    parts = sorted(files, key=natural_key)
    if not parts:
        raise EtraceError(
            f"{name}: no trace in this directory", "it should hold .nfsdb or its parts"
        )
    return [str(part) for part in parts]


def open_input(name: str) -> Source:
    """Open one file or standard input."""
    if name == STDIN:
        return Source.from_fd(_stdin())
    if name.endswith(ZSTD_SUFFIX):
        from etrace.parse.unpacking import open_zstd  # noqa: PLC0415  seldom needed

        return open_zstd(name)
    try:
        with Path(name).open("rb") as file:
            if stat.S_ISCHR(os.fstat(file.fileno()).st_mode) and not file.isatty():
                raise EtraceError(
                    f"{name}: a device, not a trace", "name the .nfsdb file that etrace run wrote"
                )
            return Source.from_fd(file.fileno())
    except OSError as error:
        raise EtraceError(
            f"cannot read {name}: {error.strerror}", "give the .nfsdb file that etrace run wrote"
        ) from error


def read_head(name: str) -> bytes:
    """Return the first bytes of a file, decompressed; none when it cannot be read."""
    try:
        if not name.endswith(ZSTD_SUFFIX):
            with Path(name).open("rb") as file:
                return file.read(HEAD_BYTES)
        import subprocess  # noqa: PLC0415  slow to import, seldom needed

        with subprocess.Popen(["zstd", "-dcq", "--", name], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            head = child.stdout.read(HEAD_BYTES)
            child.kill()
    except OSError:
        return b""
    return head
