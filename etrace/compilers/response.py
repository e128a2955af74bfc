# SPDX-License-Identifier: Apache-2.0
"""Response files: `@FILE` in an argv -> the arguments that lie in the file.

Quoting as GNU and LLVM tools do it (libiberty buildargv, LLVM TokenizeGNUCommandLine): blanks
separate, single and double quotes group, a backslash makes the next byte literal, everywhere.
Files are read as they are now, which may be after the build: what is gone is reported.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

#: libiberty gives up there too: a file that names itself
MAX_FILES = 2000
MAX_BYTES = 64 << 20
BLANKS = b" \t\n\r\f\v"
QUOTES = b"'\""
BACKSLASH = ord("\\")


@dataclass(frozen=True, slots=True)
class Expanded:
    """`argv` with what the files held; `missing` are the absolute paths that could not be read."""

    argv: tuple[bytes, ...]
    missing: tuple[bytes, ...] = ()


def split(text: bytes) -> list[bytes]:
    """Split the content of a response file into arguments."""
    out: list[bytes] = []
    word: bytearray | None = None
    quote = 0
    at, end = 0, len(text)
    while at < end:
        byte = text[at]
        at += 1
        if not quote and byte in BLANKS:
            if word is not None:
                out.append(bytes(word))
                word = None
            continue
        word = bytearray() if word is None else word
        if byte == BACKSLASH and at < end:
            word.append(text[at])
            at += 1
        elif byte == quote:
            quote = 0
        elif not quote and byte in QUOTES:
            quote = byte
        else:
            word.append(byte)
    return out if word is None else [*out, bytes(word)]


def _read(path: bytes) -> bytes | None:
    """Return the content of a regular file; None for a device, a pipe, or nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(fd, "rb") as stream:  # noqa: PTH123  a descriptor
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        return stream.read(MAX_BYTES)


def expand(argv: Sequence[bytes], cwd: bytes | os.PathLike[str]) -> Expanded:
    """Replace each `@FILE` by the arguments in FILE, nested ones too; relative ones are to `cwd`.

    An argument whose file cannot be read is left out and its path listed. argv[0] stays.
    """
    if not any(argument.startswith(b"@") for argument in argv[1:]):
        return Expanded(tuple(argv))
    directory = os.fsencode(cwd)
    out, missing = list(argv[:1]), []
    todo = list(reversed(argv[1:]))
    n_files = 0
    while todo:
        argument = todo.pop()
        if not argument.startswith(b"@") or len(argument) == 1:
            out.append(argument)
            continue
        path = os.path.join(directory, argument[1:])  # noqa: PTH118  bytes
        text = _read(path) if n_files < MAX_FILES else None
        n_files += 1
        if text is None:
            missing.append(path)
        else:
            todo.extend(reversed(split(text)))
    return Expanded(tuple(out), tuple(missing))
