# SPDX-License-Identifier: Apache-2.0
"""An open file -> the file system that it is on: proc(5), fdinfo and mountinfo.

Regular files of /proc, tracefs and their like are answers and commands of the kernel, which differ
from files in nothing that stat(2) tells.
"""

from __future__ import annotations

import os
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
