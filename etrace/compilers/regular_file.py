# SPDX-License-Identifier: Apache-2.0
"""A path that a trace names -> the bytes of the regular file there, and of nothing else."""

from __future__ import annotations

import os

from libetrace.core.regular_file import open_regular


def is_regular(path: bytes) -> bool:
    """Return whether a regular file of a disk is there that can be read."""
    try:
        os.close(open_regular(path))
    except OSError:
        return False
    return True


def read_regular(path: bytes, max_bytes: int) -> bytes | None:
    """Return the content of a regular file; None when it is missing or larger."""
    try:
        with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
            text = stream.read(max_bytes + 1)
    except OSError:
        return None
    return text if len(text) <= max_bytes else None


def read_head(path: bytes, n_bytes: int) -> bytes:
    """Return the first bytes of a regular file; empty when it is missing."""
    try:
        with open(open_regular(path), "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read(n_bytes) or b""
    except OSError:
        return b""
