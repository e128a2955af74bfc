# SPDX-License-Identifier: Apache-2.0
"""A path that a trace names -> the bytes of the regular file there, and of nothing else."""

from __future__ import annotations

import os

from libetrace.core import regular_file


def is_regular(path: bytes) -> bool:
    """Return whether a regular file of a disk is there that can be read."""
    try:
        os.close(regular_file.open_regular(path))
    except OSError:
        return False
    return True


def read_regular(path: bytes, max_bytes: int) -> bytes | None:
    """Return the content of a regular file; None when it is missing or larger."""
    try:
        return regular_file.read_regular(path, max_bytes)
    except OSError:
        return None


def read_head(path: bytes, n_bytes: int) -> bytes:
    """Return the first bytes of a regular file; empty when it is missing."""
    try:
        return regular_file.read_head(path, n_bytes)
    except OSError:
        return b""
