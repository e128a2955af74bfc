# SPDX-License-Identifier: Apache-2.0
"""A path that a trace names -> the bytes of the regular file there, and of nothing else.

Whoever wrote the trace chose the path, and root may read it. A pipe would be waited for, opening a
device may do something (rewind a tape, arm a watchdog), and files of /proc and /sys are the
kernel's: none of them is opened. open(2): O_PATH opens nothing but the name.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import cache

#: file systems whose regular files are answers of the kernel
VIRTUAL = ("/proc", "/sys")


@cache
def _virtual_devices() -> frozenset[int]:
    found = set()
    for path in VIRTUAL:
        with suppress(OSError):
            found.add(os.stat(path).st_dev)  # noqa: PTH116  the name of a mount, links followed
    return frozenset(found)


def open_regular(path: bytes) -> int:
    """Open a regular file for reading and return the descriptor; OSError for all else."""
    try:
        name = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in it
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from error
    try:
        status = os.fstat(name)
        if not stat.S_ISREG(status.st_mode) or status.st_dev in _virtual_devices():
            raise OSError(errno.EINVAL, "not a regular file on a disk")
        return os.open(f"/proc/self/fd/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(name)


def is_regular(path: bytes) -> bool:
    """Tell whether a regular file of a disk is there that can be read."""
    try:
        os.close(open_regular(path))
    except OSError:
        return False
    return True


def read_regular(path: bytes, max_bytes: int) -> bytes | None:
    """Return the content of a regular file; None when it is missing or larger."""
    try:
        with open(open_regular(path), "rb") as stream:
            text = stream.read(max_bytes + 1)
    except OSError:
        return None
    return text if len(text) <= max_bytes else None


def read_head(path: bytes, n_bytes: int) -> bytes:
    """Return the first bytes of a regular file; empty when it is missing."""
    try:
        with open(open_regular(path), "rb", buffering=0) as stream:
            return stream.read(n_bytes) or b""
    except OSError:
        return b""
