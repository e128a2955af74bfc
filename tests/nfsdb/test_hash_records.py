# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.hashes` is read as it was written; one that is damaged or cut is refused whole."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etrace.nfsdb import hash_records
from etrace.nfsdb.hash_records import Hashed, Inode, State

A, B = "a" * 64, "b" * 40
RECORDS = [
    (b"/a", Hashed(State.TRACED, Inode(1, 2, 3, 4, 5), A, B)),
    (b"/with\nnewline \xff", Hashed(State.TRACED, Inode(1, 3, 0, -4, 5), A, B)),
    (b"/gone", Hashed(State.GONE)),
    (b"/a", Hashed(State.UNSTABLE, Inode(1, 2, 9, 4, 6))),
]


def written(records: list[tuple[bytes, Hashed]]) -> bytes:
    stream = io.BytesIO()
    hash_records.write(stream, records)
    return stream.getvalue()


def whole(records: list[tuple[bytes, Hashed]]) -> list[tuple[bytes, Hashed]]:
    return [
        (path, each._replace(inode=each.inode or hash_records.NO_INODE)) for path, each in records
    ]


def test_an_end_without_a_number_is_refused() -> None:
    for end in (b"end\n", b"end 0 0\n", b"end x\n"):
        with pytest.raises(ValueError, match="its end"):
            hash_records.read(hash_records.FIRST_LINE + end)


def test_records_are_read_as_they_were_written() -> None:
    assert hash_records.read(written(RECORDS)) == whole(RECORDS)
    assert hash_records.read(written([])) == []


@given(st.lists(st.tuples(st.binary(min_size=1), st.sampled_from([h for _, h in RECORDS]))))
def test_any_path_is_kept(records: list[tuple[bytes, Hashed]]) -> None:
    assert hash_records.read(written(records)) == whole(records)


def test_a_file_that_is_cut_is_refused() -> None:
    data = written(RECORDS)
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"\w"):
            hash_records.read(data[:end])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"etrace hashes 1", b"etrace hashes 2"), (b"traced 3", b"other 3"),
        (b"traced 3", b"gone 3"), (b"gone -1", b"traced -1"), (A.encode(), A[:-1].encode()),
        (A.encode(), A[:-1].encode() + b"g"), (b" 2\n/a", b" 3\n/a"), (b" 2\n/a", b" -2\n/a"),
        (b" 2\n/a", b" 999999999\n/a"), (b"end 4", b"end 5"), (b"1 2 ", b"1 x "),
        (b"end 4\n", b"end 4\nend 4\n"), (b"traced 3", b"traced 99999999999999999999"),
        (b"traced 3", b"tr\xe4ced 3"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(old: bytes, new: bytes) -> None:
    data = written(RECORDS)
    assert old in data
    with pytest.raises(ValueError, match=r"\w"):
        hash_records.read(data.replace(old, new, 1))
