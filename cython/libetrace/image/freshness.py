# SPDX-License-Identifier: Apache-2.0
"""A file -> its stamp, and whether a file still matches a stamp."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from libetrace.core.hashes import digest_file
from libetrace.core.regular_file import open_regular

#: the stamp of a file, see remember()
Remembered = Mapping[str, Any]


def _digest(path: Path) -> str:
    with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
        return digest_file(stream.fileno())


def _stamp(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}


def remember(path: Path) -> dict[str, Any] | None:
    """Return the stamp of a file, None when it is missing. OSError."""
    try:
        return {**_stamp(path), "digest": _digest(path)}
    except FileNotFoundError:
        return None


def restamped(path: Path, remembered: Remembered | None) -> dict[str, Any] | None:
    """Return the remembered stamp with the file's present time and inode, for equal content."""
    if remembered is None or not path.exists():
        return None if remembered is None else dict(remembered)
    return {**remembered, **_stamp(path)}


def is_older(made: Path, source: Path) -> bool:
    """Return whether a file is older than another one, and so was not made from it. OSError.

    Only used without a remembered stamp, because a copy may have any time.
    """
    try:
        return source.stat().st_mtime_ns > made.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def is_same(path: Path, remembered: Remembered | None) -> bool:
    """Return whether a file matches a stamp: by time and inode, else by content. OSError.

    A copy has another inode or time and the same content: it is read once.
    """
    try:
        stamp = _stamp(path)
    except FileNotFoundError:
        return remembered is None
    if remembered is None or stamp["size"] != remembered.get("size"):
        return False
    known = {key: remembered.get(key) for key in stamp}
    return stamp == known or _digest(path) == remembered.get("digest")
