# SPDX-License-Identifier: Apache-2.0
"""Files that the build opened, who opened them and how, and those that it never used."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.select.selection import (
    EVERYTHING,
    Selection,
    opened_paths,
    selected_executions,
    selected_opens,
)
from etrace.spec.database import IS_WRITE, NONE


def ref_files(
    image: Image, selection: Selection = EVERYTHING, *, original: bool = False
) -> list[bytes]:
    """Return the paths of opened files, each once, in order of bytes."""
    return opened_paths(image, selected_opens(image, selection), original=original)


READ, WRITE = 1, 2
#: by the access bits of a mode
BITS = (READ, WRITE, READ | WRITE, READ | WRITE)


def written_paths(image: Image) -> bytearray:
    """Return for each row of `paths` whether the build opened it for writing."""
    opens = image["opens"]
    written = bytearray(image["paths"].n_rows)
    for path, mode in zip(opens["path"], opens["mode"], strict=True):
        written[path] |= IS_WRITE[mode]
    return written


class Access(NamedTuple):
    """One execution and one file: rows of `executions` and `paths`, READ, WRITE or both."""

    execution: int
    path: int
    bits: int

    @property
    def letters(self) -> str:
        """Return r, w or rw."""
        return ("", "r", "w", "rw")[self.bits]


def faccess(image: Image, selection: Selection = EVERYTHING) -> list[Access]:
    """Return accesses by file and execution; all original paths of a file count together."""
    table = image["opens"]
    found: dict[tuple[int, int], int] = {}
    for row in selected_opens(image, selection):
        key = (table["path"][row], table["execution"][row])
        found[key] = found.get(key, 0) | BITS[table["mode"][row] & 3]
    return [Access(execution, path, bits) for (path, execution), bits in sorted(found.items())]


def descendants(image: Image, rows: Iterable[int]) -> list[int]:
    """Return executions and everything that they started, ascending.

    What an execution forked belongs to it with every later execution of the forked process.
    """
    executions, child = image["executions"], image["children"]["execution"]
    upid = executions["upid"]
    seen: set[int] = set()
    queue = list(rows)
    while queue:
        row = queue.pop()
        if row in seen:
            continue
        seen.add(row)
        for i in executions.span("children.start", row):
            first = child[i]
            while first != NONE and first < len(upid) and upid[first] == upid[child[i]]:
                queue.append(first)
                first += 1
    return sorted(seen)


def procref(image: Image, selection: Selection, *, with_children: bool = False) -> list[int]:
    """Return the rows of `opens` of the selected executions, in their order."""
    if not with_children:
        return list(selected_opens(image, selection))
    rows = descendants(image, selected_executions(image, selection.of_executions()))
    keys = image["executions"]
    pids = tuple(b"%d:%d" % (keys["upid"][row], keys["index"][row]) for row in rows)
    return list(selected_opens(image, selection.of_files()._replace(pids=pids)))


#: directories of version control systems
SKIPPED = frozenset((b".git", b".hg", b".svn", b".bzr", b"CVS"))
#: prefixes of the database's own files
OWN = (b".nfsdb", b".bas_config")


def unused(image: Image, directory: Path) -> list[bytes]:
    """Return files of a directory that the build never read, ran or wrote: sorted absolute paths.

    Compares the present file system with every opened path: the original, the resolved one, and the
    one with all symbolic links resolved. EtraceError when it is not a directory.
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
