# SPDX-License-Identifier: Apache-2.0
"""A directory -> the files in it that the build never read, ran, or wrote.

Compares the present file system with every opened path: the original, the resolved one, and the one
with all symbolic links resolved.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.spec.database import NONE

#: directories of version control systems
SKIPPED = frozenset((b".git", b".hg", b".svn", b".bzr", b"CVS"))
#: prefixes of the database's own files
OWN = (b".nfsdb", b".bas_config")


def unused(image: Image, directory: Path) -> list[bytes]:
    """Return sorted absolute paths of regular files; EtraceError when it is not a directory.

    Files that the build wrote never count; a link counts as its target.
    """
    if not directory.is_dir():
        raise EtraceError(f"{directory}: not a directory", "name a directory that holds sources")
    used = _used(image)
    top = os.fsencode(directory.absolute())
    return sorted(path for path in _files(os.path.normpath(top)) if not _is_used(path, used))


def _used(image: Image) -> Collection[bytes]:
    opens = image["opens"]
    used = {image.path_string(row) for row in set(opens["path"])}
    used |= {image.string(row) for row in set(opens["original"])}
    binaries = set(image["executions"]["binary"]) - {NONE}
    return used | {image.path_string(row) for row in binaries}


def _is_used(path: bytes, used: Collection[bytes]) -> bool:
    return path in used or os.path.realpath(path) in used


def _files(top: bytes) -> Iterator[bytes]:
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if name not in SKIPPED]
        for name in files:
            path = os.path.join(directory, name)  # noqa: PTH118  bytes
            if not name.startswith(OWN) and os.path.isfile(path):  # noqa: PTH113
                yield path
