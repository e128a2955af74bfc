# SPDX-License-Identifier: Apache-2.0
"""A name that somebody else chose -> the bytes of the regular file there, and of nothing else.

The files beside a database, and those that a trace names, may be anyone's, and root may read them.
A pipe would be waited for, opening a device may do something (rewind a tape, arm a watchdog), and
files of /proc, tracefs and their like are the kernel's: none of them is opened. open(2): O_PATH
opens nothing but the name.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any

from libetrace.core.mounts import mount_of

NOT_REGULAR = "not a regular file on a disk"
#: brackets within brackets of a JSON file
NESTING_MAX = 64


#: device -> whether its file system holds files, not answers of the kernel
_devices: dict[int, bool] = {}


def _stores(fd: int, device: int) -> bool:
    if device not in _devices:
        mount = mount_of(fd)
        _devices[device] = mount is None or mount.stores
    return _devices[device]


def open_regular(path: str | bytes | os.PathLike[str]) -> int:
    """Open a regular file for reading and return the descriptor; OSError for all else."""
    shown = os.fsdecode(path)
    try:
        name = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in it
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), shown) from error
    try:
        status = os.fstat(name)
        if not stat.S_ISREG(status.st_mode) or not _stores(name, status.st_dev):
            raise OSError(errno.EINVAL, NOT_REGULAR, shown)  # noqa: TRY301  closes the name
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(f"/proc/self/fd/{name}", flags)
        except FileNotFoundError:  # no /proc in this root directory
            fd = os.open(path, flags)
            if not os.path.sameopenfile(fd, name):
                os.close(fd)
                raise
            return fd
    except OSError as error:
        raise OSError(error.errno, error.strerror, shown) from error
    finally:
        os.close(name)


def _is_deeper(value: Any, limit: int) -> bool:
    """Tell whether JSON has containers within containers beyond a limit."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return False
    return bool(level)


def read_json(path: str | os.PathLike[str], max_bytes: int) -> Any:
    """Return the value in a JSON file beside a database.

    OSError when it is no regular file, ValueError when it is no JSON, too large or nested too deep.
    """
    with open(open_regular(path), "rb") as stream:
        text = stream.read(max_bytes + 1)
    if len(text) > max_bytes:
        raise ValueError(f"more than {max_bytes:,} bytes")
    too_deep = f"more than {NESTING_MAX} brackets within one another"
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if _is_deeper(value, NESTING_MAX):
        raise ValueError(too_deep)
    return value
