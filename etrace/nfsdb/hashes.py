# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.hashes`, and what is still there -> the table `hashes` of an image (docs/hashes.md)."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from libetrace.core.regular_file import read_regular
from libetrace.image.file import Image, new_table

from etrace.nfsdb import hash_records
from etrace.nfsdb.hash_records import HASHED, Hashed, State
from etrace.nfsdb.products import StringTable, reopen, rewrite
from etrace.nfsdb.trace_time import trace_end_ns

TABLE = "hashes"
#: attribute of the image: files without a hash of the capture were looked at, too
ALL = "all_hashed"
NONE = -1
#: without an answer for so long, the rest is not waited for: a server of files may be dead
PATIENCE_S = 60.0


def read_sides(sides: Sequence[Path]) -> tuple[dict[bytes, Hashed], list[str]]:
    """Return the last state of each file that captures hashed, and problems with their files."""
    found: dict[bytes, Hashed] = {}
    problems = []
    for side in sides:
        try:
            found.update(hash_records.read(read_regular(side, hash_records.MAX_BYTES)))
        except OSError as error:
            problems.append(f"{side}: {error.strerror}; its hashes are left out")
        except ValueError as error:
            problems.append(f"{side}: not a file of hashes: {error}; they are left out")
    return found, problems


def _in_image(image: Image, found: Mapping[bytes, Hashed]) -> dict[int, Hashed]:
    rows = ((image.find_path(path), hashed) for path, hashed in found.items())
    return {row: hashed for row, hashed in rows if row >= 0}


def _hash_rest(image: Image, known: Mapping[int, Hashed], n_threads: int) -> dict[int, Hashed]:
    """Hash the paths of an image that are not `known`, as they are now."""
    from etrace.nfsdb.hashing import Pool  # noqa: PLC0415  seldom needed

    end_ns, paths = trace_end_ns(image), image["paths"]
    sizes = [
        size if mode else NONE for size, mode in zip(paths["size"], paths["mode"], strict=True)
    ]
    programs = set(image["executions"]["binary"])
    pool = Pool(n_threads)
    rest = {image.path_string(row): row for row in range(len(sizes)) if row not in known}
    for path, row in rest.items():
        if path.startswith(b"/"):
            pool.add(path, is_program=row in programs)
    found = {row: Hashed(State.UNREADABLE) for row in rest.values()}
    while pool.n_left and (answer := pool.take(PATIENCE_S)) is not None:
        path, hashed = answer
        row = rest[path]
        found[row] = _compared(hashed, end_ns, sizes[row])
    return found


def _compared(hashed: Hashed, end_ns: int | None, size: int) -> Hashed:
    """Return what was found now, with its state compared with the trace.

    `size` is NONE where no size is known: of a file that was gone, or was executed only.
    """
    inode = hashed.inode
    if hashed.state != State.TRACED or inode is None:
        return hashed
    is_old = end_ns is not None and max(inode.mtime_ns, inode.ctime_ns) <= end_ns
    is_same = is_old and size in (inode.size, NONE)
    return hashed._replace(state=State.SAME if is_same else State.CHANGED)


def _number(strings: StringTable, digits: str) -> int:
    return strings.number(digits.encode()) if digits else NONE


def add_hashes(
    path: Path, sides: Sequence[Path], *, hashes_rest: bool = False, n_threads: int = 1
) -> list[str]:
    """Add the table to an image; return problems with `sides`. EtraceError, OSError.

    It has the files that the capture hashed. With `hashes_rest` all others are hashed now.
    """
    captured, problems = read_sides(sides)
    if not captured and not hashes_rest:
        return problems
    image = reopen(path)
    found = _in_image(image, captured)
    if hashes_rest:
        found |= _hash_rest(image, found, n_threads)
    strings = StringTable(image)
    rows = sorted(found.items())
    sizes = (
        hashed.inode.size if hashed.state in HASHED and hashed.inode else NONE for _, hashed in rows
    )
    data = (
        array("I", [row for row, _ in rows]),
        array("B", [hashed.state for _, hashed in rows]),
        array("q", sizes),
        array("i", [_number(strings, hashed.sha256) for _, hashed in rows]),
        array("i", [_number(strings, hashed.git_blob) for _, hashed in rows]),
    )
    rewrite(image, [strings.table(), new_table(TABLE, data)], {ALL: hashes_rest})
    return problems
