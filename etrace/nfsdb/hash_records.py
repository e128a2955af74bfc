# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.hashes`, the hashes of files beside their trace, written and read (docs/hashes.md).

After the first line there is a record for each state of a file that was looked at, in that order:

    STATE SIZE MTIME_NS CTIME_NS DEVICE INODE SHA256 BLOB BYTES
    PATH

BYTES is the length of PATH, in which anything may be; without hashes the digests are `-`. The last
line, `end N`, has the number of records. A file without it is not whole, and is not used.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

SUFFIX = ".hashes"
FIRST_LINE = b"etrace hashes 1\n"
#: a million files
MAX_BYTES = 512 << 20
DIGITS = frozenset(b"0123456789abcdef")
SHA256_DIGITS, SHA1_DIGITS = 64, 40


class State(enum.IntEnum):
    """What is known of a file, as the table `hashes` numbers it."""

    TRACED = 0  #: hashed while the build ran
    SAME = 1  #: hashed later; size and time are not newer than the trace
    CHANGED = 2  #: hashed later; it was changed after the build
    GONE = 3  #: no longer there
    UNREADABLE = 4  #: may not be read
    SPECIAL = 5  #: not a regular file of a disk, or it has another place now
    UNSTABLE = 6  #: it changed while it was read

    @property
    def word(self) -> str:
        """Its name for users."""
        return self.name.lower()


#: states of files that have hashes
HASHED = frozenset((State.TRACED, State.SAME, State.CHANGED))


class Inode(NamedTuple):
    """The state of a file: the same one has the same content."""

    device: int
    number: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Hashed(NamedTuple):
    """What was found at a path; without hashes the digests are empty."""

    state: State
    inode: Inode | None = None
    sha256: str = ""
    git_blob: str = ""


NO_INODE = Inode(0, 0, -1, 0, 0)


def write(stream: BinaryIO, records: Iterable[tuple[bytes, Hashed]]) -> None:
    """Write all records. OSError."""
    stream.write(FIRST_LINE)
    n_records = 0
    for path, found in records:
        inode = found.inode or NO_INODE
        stream.write(
            f"{found.state.word} {inode.size} {inode.mtime_ns} {inode.ctime_ns} {inode.device}"
            f" {inode.number} {found.sha256 or '-'} {found.git_blob or '-'} {len(path)}\n".encode()
        )
        stream.write(path + b"\n")
        n_records += 1
    stream.write(b"end %d\n" % n_records)


def read(data: bytes) -> list[tuple[bytes, Hashed]]:
    """Return the records. ValueError when the file is damaged or not whole."""
    if not data.startswith(FIRST_LINE):
        raise ValueError("it has another first line")
    return list(_records(data))


def _records(data: bytes) -> Iterator[tuple[bytes, Hashed]]:
    at, n_records = len(FIRST_LINE), 0
    while (end := data.find(b"\n", at)) >= 0:
        words = data[at:end].split(b" ")
        if words[0] == b"end":
            if words[1:] != [b"%d" % n_records] or end + 1 != len(data):
                raise ValueError("its end is that of another file")
            return
        state, *numbers, sha256, blob, n_path = words
        found = _hashed(state, numbers, _hex(sha256, SHA256_DIGITS), _hex(blob, SHA1_DIGITS))
        start, at = end + 1, end + 2 + int(n_path)
        if int(n_path) < 1 or data[at - 1 : at] != b"\n":
            raise ValueError(f"record {n_records}: the path has another length")
        yield data[start : at - 1], found
        n_records += 1
    raise ValueError("it is not whole")


def _hashed(state: bytes, numbers: list[bytes], sha256: str, blob: str) -> Hashed:
    known = {each.word: each for each in State}
    size, mtime_ns, ctime_ns, device, number = map(int, numbers)
    found = known.get(state.decode("ascii"))
    has_digests = bool(sha256 and blob and 0 <= size < 1 << 63)
    if found is None or has_digests != (found in HASHED):
        raise ValueError(f"no state {state.decode('ascii')!r} with this")
    return Hashed(found, Inode(device, number, size, mtime_ns, ctime_ns), sha256, blob)


def _hex(text: bytes, n_digits: int) -> str:
    if text == b"-":
        return ""
    if len(text) != n_digits or not DIGITS.issuperset(text):
        raise ValueError(f"{text.decode('ascii', 'replace')} is not a digest")
    return text.decode("ascii")
