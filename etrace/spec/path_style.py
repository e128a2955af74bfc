# SPDX-License-Identifier: Apache-2.0
"""How a build writes paths: as POSIX does, or as Windows does.

Paths of Windows have drives and both slashes, and their names are the same in any case. A database
of such a build has the attribute `path_style`; the paths in it stay as they were written, and
whoever compares or joins them asks here. Case is that of Python's lower(), which differs from
NTFS's own table for a few rare letters.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ATTRIBUTE = "path_style"
WINDOWS = "windows"
_ABSOLUTE = re.compile(rb"[A-Za-z]:[\\/]|\\\\")
_EXE = b".exe"


class PathStyle(NamedTuple):
    """What code that handles paths has to know of them."""

    is_windows: bool
    join: Callable[[bytes, bytes], bytes]
    normpath: Callable[[bytes], bytes]
    basename: Callable[[bytes], bytes]
    dirname: Callable[[bytes], bytes]


#: names below what the kernel calls the working directory and the root of whoever asks: proc(5)
_OF_PROCESS = re.compile(rb"/+proc/+(?:self|thread-self)/+(cwd|root)(?:/+|\Z)")


def join_posix(directory: bytes, name: bytes) -> bytes:
    """Return the path of a name that a process in `directory` used.

    `/proc/self/cwd/x` is `x` there and `/proc/self/root/x` is `/x`; for others they differ.
    """
    while (match := _OF_PROCESS.match(name)) is not None:
        name = name[match.end() :]
        if match[1] == b"root":
            name = b"/" + name
        elif not name:
            return directory
    return posixpath.join(directory, name)


POSIX_STYLE = PathStyle(
    False, join_posix, posixpath.normpath, posixpath.basename, posixpath.dirname
)
WINDOWS_STYLE = PathStyle(True, ntpath.join, ntpath.normpath, ntpath.basename, ntpath.dirname)


def is_windows_path(path: bytes) -> bool:
    """Return whether a path begins with a drive or a share of Windows."""
    return _ABSOLUTE.match(path) is not None


def attributes_of(root: str) -> dict[str, str]:
    """Return the attribute of a database by the directory where its build began."""
    raw = root.encode("utf-8", "surrogateescape")
    return {ATTRIBUTE: WINDOWS} if is_windows_path(raw) else {}


def style_of(attributes: Mapping[str, Any]) -> PathStyle:
    """Return the style of a database by its attributes."""
    return WINDOWS_STYLE if attributes.get(ATTRIBUTE) == WINDOWS else POSIX_STYLE


def same_case(path: bytes) -> bytes:
    """Return a path of Windows in the form in which equal ones are equal."""
    return ntpath.normcase(path)


def program_name(path: bytes) -> bytes:
    """Return the name of a program's file; one of Windows in lower case and without `.exe`."""
    if is_windows_path(path) or path[-len(_EXE) :].lower() == _EXE:
        return ntpath.basename(path).lower().removesuffix(_EXE)
    return path.rpartition(b"/")[2]
