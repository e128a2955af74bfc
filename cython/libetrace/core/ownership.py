# SPDX-License-Identifier: Apache-2.0
"""Which files are mapped, and which are read into memory.

A mapped file that is cut while it is read kills the reader (SIGBUS, mmap(2)). So a file is mapped
only when nobody but its reader and root may change it; any other one is read, which costs memory
and can be interrupted by nobody.
"""

from __future__ import annotations

import os
import stat

ROOT = 0


def may_be_mapped(fd: int) -> bool:
    """Tell whether only this user, this group and root may change an open file. OSError."""
    status = os.fstat(fd)
    writers = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_gid in (ROOT, os.getegid()):
        writers &= stat.S_IWOTH
    return status.st_uid in (ROOT, os.geteuid()) and not writers
