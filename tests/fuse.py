# SPDX-License-Identifier: Apache-2.0
"""A file system (FUSE) whose server never answers: whoever looks at a name in it waits."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backends import need_root

MNT_DETACH = 2


@contextmanager
def dead_server(mount: Path) -> Iterator[Path]:
    """Mount one at a new directory; root."""
    need_root()
    mount.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    assert libc.mount(b"dead", os.fsencode(mount), b"fuse", 0, options) == 0, ctypes.get_errno()
    try:
        yield mount
    finally:
        libc.umount2(os.fsencode(mount), MNT_DETACH)
        os.close(fd)
