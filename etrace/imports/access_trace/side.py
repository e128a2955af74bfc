# SPDX-License-Identifier: Apache-2.0
"""The operations of an imported trace unchanged, in a file beside the event lines.

Event lines have no failed accesses, no error codes and no numbers of BuildXL; the file keeps them,
so that an export gives back what was imported. Its first line is the digest of the event lines that
belong to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from libetrace.core.hashes import digest_file
from libetrace.core.regular_file import open_regular

from etrace.imports.access_trace import reader, writer
from etrace.imports.access_trace.model import AccessTrace

SUFFIX = ".accesses"
FIRST = b"accesses of %b\n"


def path_of(trace: Path) -> Path:
    """Name the file beside a trace."""
    return Path(f"{trace}{SUFFIX}")


def write(trace: AccessTrace, stream: BinaryIO, events_fd: int) -> None:
    """Write the file for the event lines of an open file."""
    os.lseek(events_fd, 0, os.SEEK_SET)
    stream.write(FIRST % digest_file(events_fd).encode())
    writer.write(trace, stream)


def read(path: Path, digest: str) -> AccessTrace | None:
    """Read the file of event lines with this digest; None when there is none. EtraceError."""
    try:
        with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
            first = FIRST % digest.encode()
            if stream.read(len(first)) != first:
                return None
            return reader.read(str(path), stream)
    except FileNotFoundError:
        return None
