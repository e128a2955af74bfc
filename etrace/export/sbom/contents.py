# SPDX-License-Identifier: Apache-2.0
"""Files that are still there -> digests of their content, when it is that of the build.

A file counts when it has the size that it had when the trace was parsed, was not written after the
build, and does not change while it is read. Each is read once, by threads: hashlib releases
the interpreter. Only regular files of a disk are opened, so nothing waits for a program that
serves files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from etrace.nfsdb.hash_records import State
from etrace.nfsdb.hashing import Mounts, RefusedError, open_content
from etrace.origin.licence import N_BYTES, tag_in

PIECE = 1 << 20
#: files that a thread takes at once
N_TOGETHER = 64
#: words for files without digests
CHANGED, GONE, UNREADABLE = State.CHANGED.word, State.GONE.word, State.UNREADABLE.word
SAME, SPECIAL = State.SAME.word, State.SPECIAL.word


@dataclass(frozen=True, slots=True)
class Content:
    """Digests in hexadecimal digits, empty when there are none; `tag` is the file's licence."""

    state: str
    size: int = -1
    sha256: str = ""
    sha512: str = ""
    sha1: str = ""
    blob: str = ""
    tag: str = ""


def contents(
    wanted: Iterable[tuple[bytes, int]], limit_ns: int, *, with_sha1: bool = False
) -> Mapping[bytes, Content]:
    """Return the contents of (path, size) pairs; a size of -1 is that of a file that was gone.

    A file that was modified after `limit_ns` is not that of the build.
    """
    is_read = Mounts().are_read

    def some(pairs: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, Content]]:
        return [
            (path, _content(path, size, limit_ns, is_read, with_sha1=with_sha1))
            for path, size in pairs
        ]

    pairs = list(wanted)
    parts = [pairs[i : i + N_TOGETHER] for i in range(0, len(pairs), N_TOGETHER)]
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return dict(each for part in pool.map(some, parts) for each in part)


def _content(
    path: bytes, size: int, limit_ns: int, is_read: Callable[[bytes], bool], *, with_sha1: bool
) -> Content:
    if size < 0:
        return Content(GONE)
    try:
        descriptor = open_content(path, is_read)
    except RefusedError as refused:
        return Content(refused.state.word)
    except (FileNotFoundError, NotADirectoryError):
        return Content(GONE)
    except (OSError, ValueError):
        return Content(UNREADABLE)
    with open(descriptor, "rb", buffering=0) as stream:  # noqa: PTH123  a descriptor
        try:
            before = os.fstat(descriptor)
            if before.st_size != size or before.st_mtime_ns > limit_ns:
                return Content(CHANGED)
            names = ["sha256", "sha512", *(("sha1",) if with_sha1 else ())]
            digests = [hashlib.new(name, usedforsecurity=False) for name in names]
            blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            head, n_read = b"", 0
            while piece := stream.read(PIECE):
                head = head or piece[:N_BYTES]
                n_read += len(piece)
                for digest in (*digests, blob):
                    digest.update(piece)
            after = os.fstat(descriptor)
        except OSError:
            return Content(UNREADABLE)
    if n_read != size or _stamp(before) != _stamp(after):
        return Content(CHANGED)
    values = dict(zip(names, (digest.hexdigest() for digest in digests), strict=True))
    return Content(
        SAME, size, values["sha256"], values["sha512"], values.get("sha1", ""), blob.hexdigest(),
        tag_in(head),
    )  # fmt: skip


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns
