# SPDX-License-Identifier: Apache-2.0
"""Paths as a program gave them -> the absolute paths of event lines.

A log has the text of paths, not where links lead; only `-y` shows what an open opened. `Lexical`
works on the text alone, for logs of another machine or time. `Here` asks the file system of this
machine, for a log that is being written.
"""

from __future__ import annotations

import os
from typing import Protocol

from libetrace.core.regular_file import PATH_MAX, open_regular

#: length of a `#!` line and depth of scripts that the kernel takes, execve(2)
SCRIPT_BYTES = 256
MAX_SCRIPTS = 4


class Resolver(Protocol):
    """Finds out what a path names."""

    def entry(self, path: bytes) -> bytes:
        """Return a path with its directories resolved; the last name stays."""

    def file(self, path: bytes) -> bytes:
        """Return the path of the file itself."""

    def target(self, path: bytes, /) -> bytes | None:
        """Return where a link leads when something is there; None when that is not known."""

    def script(self, path: bytes, /) -> list[bytes]:
        """Return the words of a script's `#!` line, none when it is not known to be a script."""


class UnknownDirectoryError(Exception):
    """A relative path in a directory that is not known."""


def join(directory: bytes, path: bytes) -> bytes:
    """Return a path as given, made absolute. UnknownDirectoryError."""
    if path.startswith(b"/"):
        return path
    if not directory:
        raise UnknownDirectoryError
    return b"%b/%b" % (directory, path)


def tidy(path: bytes) -> bytes:
    """Return an absolute path without `.`, `..` and doubled slashes."""
    if b"/." not in path and b"//" not in path and path.startswith(b"/"):
        return path.rstrip(b"/") or b"/"  # as nearly all are
    return b"/" + os.path.normpath(path).lstrip(b"/")


class Lexical:
    """Works on the text alone."""

    def entry(self, path: bytes) -> bytes:
        """See Resolver.entry."""
        return tidy(path)

    def file(self, path: bytes) -> bytes:
        """See Resolver.file."""
        return tidy(path)

    def target(self, _path: bytes) -> bytes | None:
        """See Resolver.target."""
        return None

    def script(self, _path: bytes) -> list[bytes]:
        """See Resolver.script."""
        return []


#: names that mean another thing to each process: not looked up
OWN = (b"/proc/", b"/dev/fd/", b"/dev/std")


class Here:
    """Asks the file system of this machine."""

    def entry(self, path: bytes) -> bytes:
        """See Resolver.entry."""
        if path.startswith(OWN) or len(path) > PATH_MAX:
            return tidy(path)
        head, _, name = path.rstrip(b"/").rpartition(b"/")
        if name in (b"", b".", b".."):
            return self.file(path)
        return tidy(os.path.realpath(head or b"/") + b"/" + name)

    def file(self, path: bytes) -> bytes:
        """See Resolver.file."""
        is_known = not path.startswith(OWN) and len(path) <= PATH_MAX
        return os.path.realpath(path) if is_known else tidy(path)

    def target(self, path: bytes) -> bytes | None:
        """See Resolver.target."""
        known = not path.startswith(OWN) and os.path.exists(path)  # noqa: PTH110  bytes
        return os.path.realpath(path) if known else None

    def script(self, path: bytes) -> list[bytes]:
        """See Resolver.script."""
        try:
            with os.fdopen(open_regular(path), "rb") as stream:
                head = stream.read(SCRIPT_BYTES)
        except OSError:
            return []
        if not head.startswith(b"#!"):
            return []
        return head[2:].split(b"\n", 1)[0].strip(b" \t").split(None, 1)
