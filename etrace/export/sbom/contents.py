# SPDX-License-Identifier: Apache-2.0
"""Files that are still there -> digests of their content, when it is that of the build.

A file counts when it has the size that it had when the trace was parsed, was not changed after the
build (by mtime and ctime), and does not change while it is read. Each is read once, by threads:
hashlib releases the interpreter. Only regular files of a disk are opened, so nothing waits for a
program that serves files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from etrace.nfsdb.hash_records import State
from etrace.nfsdb.hashing import Mounts, RefusedError, open_content
from etrace.origin.licence import N_BYTES, tag_in
from etrace.spec.database import NONE
from etrace.threads import mapped

PIECE = 1 << 20
ELF = b"\x7fELF"
#: files that a thread takes at once
N_TOGETHER = 64
#: words for files without digests
CHANGED, GONE, UNREADABLE = State.CHANGED.word, State.GONE.word, State.UNREADABLE.word
SAME, SPECIAL = State.SAME.word, State.SPECIAL.word
LARGE = "large"
#: a file that is larger is not hashed
MAX_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class Content:
    """Digests in hexadecimal digits, empty when there are none; `tag` is the file's licence.

    `is_elf`: the file has machine code in it.
    """

    state: str
    size: int = -1
    sha256: str = ""
    sha512: str = ""
    sha1: str = ""
    blob: str = ""
    tag: str = ""
    is_elf: bool = False


def contents(
    wanted: Iterable[tuple[bytes, int]],
    limit_ns: int,
    unsized: Collection[bytes] = (),
    *,
    with_sha1: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Mapping[bytes, Content]:
    """Return the contents of (path, size) pairs; a size of -1 is that of a file that was gone.

    A file that was changed after `limit_ns` is not that of the build. Of `unsized` (programs, and
    what links lead to) no size may be known, and the path may be a link. A file that is larger than
    `max_bytes` is not read: a sparse file of any size takes no room on the disk.
    """
    is_read = Mounts().are_read

    def some(pairs: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, Content]]:
        return [
            (
                path,
                _Asked(path, size, limit_ns, path in unsized, with_sha1, max_bytes).read(is_read),
            )
            for path, size in pairs
        ]

    pairs = list(wanted)
    parts = [pairs[i : i + N_TOGETHER] for i in range(0, len(pairs), N_TOGETHER)]
    n_threads = min(8, os.cpu_count() or 1)
    return dict(each for part in mapped(some, parts, n_threads) for each in part)


class _Asked(NamedTuple):
    """A file, and what is known of it."""

    path: bytes
    size: int
    limit_ns: int
    is_unsized: bool
    with_sha1: bool
    max_bytes: int

    def read(self, is_read: Callable[[bytes], bool]) -> Content:
        """Return its content, or why there is none."""
        if self.size < 0 and not self.is_unsized:
            return Content(GONE)
        try:
            descriptor = open_content(self.path, is_read, is_program=self.is_unsized)
        except RefusedError as refused:
            return Content(refused.state.word)
        except (FileNotFoundError, NotADirectoryError):
            return Content(GONE)
        except (OSError, ValueError):
            return Content(UNREADABLE)
        with open(descriptor, "rb", buffering=0) as stream:  # noqa: PTH123  a descriptor
            try:
                return self._of(stream)
            except OSError:
                return Content(UNREADABLE)

    def _of(self, stream: BinaryIO) -> Content:
        before = os.fstat(stream.fileno())
        size, changed_ns = before.st_size, max(before.st_mtime_ns, before.st_ctime_ns)
        if self.size not in (size, NONE) or changed_ns > self.limit_ns:
            return Content(CHANGED)
        if size > self.max_bytes:
            return Content(LARGE, size)
        names = ["sha256", "sha512", *(("sha1",) if self.with_sha1 else ())]
        digests = [hashlib.new(name, usedforsecurity=False) for name in names]
        blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        head, n_read = b"", 0
        while piece := stream.read(PIECE):
            head = head or piece[:N_BYTES]
            n_read += len(piece)
            for digest in (*digests, blob):
                digest.update(piece)
        if n_read != size or _stamp(before) != _stamp(os.fstat(stream.fileno())):
            return Content(CHANGED)
        values = dict(zip(names, (digest.hexdigest() for digest in digests), strict=True))
        return Content(
            SAME, size, values["sha256"], values["sha512"], values.get("sha1", ""),
            blob.hexdigest(), tag_in(head), head.startswith(ELF),
        )  # fmt: skip


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
