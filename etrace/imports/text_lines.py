# SPDX-License-Identifier: Apache-2.0
"""A stream of bytes -> its lines, none of which takes more memory than a log of a build needs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

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
        raise EtraceError(f"cannot read {name}: {error.strerror}", "name the log") from error
