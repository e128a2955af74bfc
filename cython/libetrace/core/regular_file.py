# SPDX-License-Identifier: Apache-2.0
"""A name that somebody else chose -> the bytes of the regular file there, and of nothing else.

The files beside a database, and those that a trace names, may be anyone's, and root may read them.
A pipe would be waited for, opening a device may do something (rewind a tape, arm a watchdog), and
files of /proc, tracefs and their like are the kernel's: none of them is opened. open(2): O_PATH
opens only the name. Regular files of the kernel differ from others in nothing that stat(2)
reports: what file system an open file is on comes from proc(5), fdinfo and mountinfo.

A mapped file that is cut while it is read kills the reader (SIGBUS, mmap(2)). So a file is mapped
only when only its reader and root may change it; any other one is read, which costs memory
and can be interrupted by nobody.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

ROOT = 0
NOT_REGULAR = "not a regular file on a disk"
#: brackets within brackets of a JSON file
NESTING_MAX = 64
#: limits.h of Linux, in bytes: no longer name is looked up. realpath() takes time by its square
PATH_MAX = 4096
#: without a block device, and yet their files keep what is written to them; all others are refused
STORING = frozenset(
    ("9p", "afs", "aufs", "bcachefs", "beegfs", "btrfs", "ceph", "cifs", "coda", "ecryptfs", "gpfs",
     "hostfs", "lustre", "nfs", "nfs4", "orangefs", "overlay", "prl_fs", "ramfs", "shiftfs", "smb3",
     "tmpfs", "ubifs", "vboxsf", "virtiofs", "zfs")
)  # fmt: skip


class Mount(NamedTuple):
    """A mounted file system; `mounter` is who answers for the content of a FUSE, else 0."""

    kind: str
    has_device: bool
    mounter: int

    @property
    def stores(self) -> bool:
        """Whether its regular files keep what is written to them."""
        return self.has_device or self.kind in STORING or self.kind.partition(".")[0] == "fuse"


def mount_of(fd: int, pid: int | str = "self") -> Mount | None:
    """Return the mount of an open file, as the process `pid` sees it; None when it does not."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as stream:  # noqa: PTH123  starts quickly
            number = stream.read().partition(b"mnt_id:\t")[2].partition(b"\n")[0]
        with open(f"/proc/{pid}/mountinfo", "rb") as stream:  # noqa: PTH123
            lines = stream.read().split(b"\n")
    except OSError:
        return None
    return next(_mounts(lines, number), None)


def _mounts(lines: list[bytes], number: bytes) -> Iterator[Mount]:
    """Yield the mount of this number; blanks in names are escaped, so no field holds one."""
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        words = fields.split(b" ")
        if words[0] != number or not number:
            continue
        kind, _, options = rest.split(b" ", 2)
        said = [word for word in options.split(b",") if word.startswith(b"user_id=")]
        mounter = int(said[-1].partition(b"=")[2]) if said and kind.startswith(b"fuse") else 0
        yield Mount(os.fsdecode(kind), not words[2].startswith(b"0:"), mounter)


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
    """Return whether JSON has containers within containers beyond a limit."""
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


def regular_stream(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file as a stream that has its name. OSError for all else."""
    return open(path, "rb", opener=lambda name, _: open_regular(name))


def read_regular(
    path: str | bytes | os.PathLike[str],
    max_bytes: int,
    allows: Callable[[os.stat_result], bool] | None = None,
    *,
    is_text: bool = False,
) -> bytes:
    """Return the content of a regular file of at most `max_bytes`, also when it grows meanwhile.

    OSError names the file and what is wrong: not a regular file, larger than the limit (EFBIG),
    refused by `allows` (EACCES), or with null bytes in it when it `is_text`. A sparse file, which
    is of any size and takes no room, has null bytes in its holes: it is refused before it is read.
    """
    shown = os.fsdecode(path)
    too_large = OSError(errno.EFBIG, f"more than {max_bytes:,} bytes", shown)
    not_text = OSError(errno.EINVAL, "not a text: it has null bytes", shown)
    with open(open_regular(path), "rb") as stream:
        status = os.fstat(stream.fileno())
        if allows is not None and not allows(status):
            raise OSError(errno.EACCES, "others own or may change it: root does not read it", shown)
        if status.st_size > max_bytes:
            raise too_large
        if is_text and _has_hole(stream.fileno(), status.st_size):
            raise not_text
        data = stream.read(status.st_size + 1)
        if len(data) > status.st_size:  # it grows
            data += stream.read(max(max_bytes + 1 - len(data), 0))
    if len(data) > max_bytes:
        raise too_large
    if is_text and b"\0" in data:
        raise not_text
    return data


def read_head(path: str | bytes | os.PathLike[str], n_bytes: int) -> bytes:
    """Return the first bytes of a regular file. OSError."""
    with open(open_regular(path), "rb", buffering=0) as stream:
        return stream.read(n_bytes) or b""


def _has_hole(fd: int, size: int) -> bool:
    try:
        hole = os.lseek(fd, 0, os.SEEK_HOLE)
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:  # empty, or the file system does not say it
        return False
    return hole < size


def read_json(path: str | os.PathLike[str], max_bytes: int) -> Any:
    """Return the value in a JSON file of somebody else.

    OSError for anything but a regular file; ValueError when it is not JSON, too large or nested too
    deep.
    """
    try:
        text = read_regular(path, max_bytes, is_text=True)
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ValueError(error.strerror) from None
    too_deep = f"more than {NESTING_MAX} brackets within one another"
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    if _is_deeper(value, NESTING_MAX):
        raise ValueError(too_deep)
    return value


def may_be_mapped(fd: int) -> bool:
    """Return whether only this user, this group and root may change an open file. OSError."""
    status = os.fstat(fd)
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_gid in (ROOT, os.getegid()):
        writers &= stat.S_IWOTH
    return status.st_uid in (ROOT, os.geteuid()) and not writers
