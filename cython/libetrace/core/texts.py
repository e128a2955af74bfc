# SPDX-License-Identifier: Apache-2.0
"""Paths and texts of callers -> bytes, by Python's surrogateescape convention."""

from __future__ import annotations

import os
from collections.abc import Iterable

PathText = str | bytes | os.PathLike[str]


def encode_path(path: PathText) -> bytes:
    """Return the bytes of a path; TypeError for anything else."""
    raw = os.fspath(path)
    return raw.encode("utf-8", "surrogateescape") if isinstance(raw, str) else raw


def list_paths(paths: PathText | Iterable[PathText]) -> list[bytes]:
    """Return the bytes of one path or of several."""
    if isinstance(paths, str | bytes | os.PathLike):
        return [encode_path(paths)]
    return [encode_path(path) for path in paths]
