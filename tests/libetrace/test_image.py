# SPDX-License-Identifier: Apache-2.0
"""A damaged or hostile image is refused, or read within its bounds; it never crashes a reader."""

from __future__ import annotations

import json
import lzma
import struct
from array import array
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.image import ALIGNMENT, HEAD, Image, NewColumn, NewTable, open_image, write_image
from libetrace.parser import parse_bytes

from etrace.errors import EtraceError
from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.store import reopen, rewrite
from etrace.nfsdb.to_json import pieces
from etrace.spec.database import COLUMNS

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
MADE = {"n": "gAE=", "m": 1, "d": {"f": ["/a.c"], "d": [{"n": "A", "v": "1"}], "s": 2, "o": ["/a"]},
        "l": "/lib.so.1", "t": 1}  # fmt: skip


def small_image(folder: Path) -> Path:
    """A few executions with everything that an entry can have."""
    opened = [{"p": "/b", "o": "/c", "b": 1, "e": 2, "m": 97, "s": 3, "l": 9}]
    more = {"h": [{"d": 1, "p": "/b", "m": 1}], "u": [{"c": 1, "t": 2}], "i": [{"p": 1, "x": 0}]}
    entries = [
        {"p": 1, "x": i, "b": "/b", "w": "/", "v": ["a", "b"], "r": {"p": 1, "x": 0}, "o": opened,
         "c": [{"p": 1, "f": 0}], **more, **MADE}
        for i in range(3)
    ]  # fmt: skip
    files = name_files(folder / "x")
    files.json.write_text(json.dumps(entries))
    files.env.write_text('{"A=b":[1]}')
    files.mounts.write_text('[{"p":1,"x":0,"t":1,"k":"mount","source":"/s","target":"/t"}]')
    build_image(files)
    return files.image


def read_all(image: Image) -> None:
    """Go through everything that readers go through."""
    b"".join(pieces(image))
    for row in range(image["paths"].n_rows):
        image.find_path(image.path_string(row))
    for table in image.tables.values():
        try:
            pa.record_batch(table).validate()
        except ValueError:
            assert table.name in ("strings", "added_strings")


def try_to_read(path: Path) -> None:
    try:
        image = reopen(path)
    except (EtraceError, OSError):
        return
    read_all(image)


@pytest.fixture(scope="module")
def image_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return small_image(tmp_path_factory.mktemp("small")).read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_cut_image_is_refused(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.img"
    path.write_bytes(image_bytes[: data.draw(st.integers(0, len(image_bytes) - 1))])
    with pytest.raises(EtraceError, match=r"x\.img"):
        reopen(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bits_are_refused_or_read_within_bounds(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(image_bytes)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("flipped") / "x.img"
    path.write_bytes(damaged)
    try_to_read(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_number_in_any_column_is_refused_or_read_within_bounds(
    tmp_path_factory: pytest.TempPathFactory, image_bytes: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "x.img"
    path.write_bytes(image_bytes)
    image = reopen(path)
    table = data.draw(st.sampled_from(sorted(image.tables)))
    column = data.draw(st.sampled_from(sorted(image[table].columns)))
    view = image[table][column]
    if not len(view):
        return
    value = data.draw(
        st.sampled_from([0, 1, 3, 2**7, 2**16, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1])
    )
    raw = bytearray(view.cast("B"))
    at = data.draw(st.integers(0, len(view) - 1)) * view.itemsize
    raw[at : at + view.itemsize] = struct.pack("<Q", value)[: view.itemsize]
    columns = [
        NewColumn(name, info.dtype, bytes(raw) if name == column else image[table][name])
        for name, info in image[table].infos.items()
    ]
    rewrite(image, [NewTable(table, image[table].n_rows, columns)])
    try_to_read(path)


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b'{"attributes":[],"tables":[]}',
        b'{"attributes":{},"tables":{}}',
        b'{"attributes":{},"tables":[]}',
        b'{"attributes":{},"tables":[1]}',
        b'{"attributes":{},"tables":[{"name":[],"rows":0,"columns":[]}]}',
        b'{"attributes":{},"tables":[{"name":"a","rows":0,"columns":[{"name":1}]}]}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_header_that_says_nonsense_is_refused(tmp_path: Path, header: bytes) -> None:
    start = -(-(HEAD.size + len(header)) // ALIGNMENT) * ALIGNMENT
    path = tmp_path / "x.img"
    path.write_bytes((HEAD.pack(b"ETRACEDB", 1, len(header), start) + header).ljust(start, b"\0"))
    with pytest.raises(EtraceError, match=r"x\.img"):
        reopen(path)


@pytest.mark.parametrize("offset", [-64, 1 << 62, 7, 1.5, "0", None])
def test_a_column_outside_the_file_is_refused(tmp_path: Path, offset: Any) -> None:
    column = {"name": "c", "dtype": "<u4", "unit": "", "meaning": "", "offset": offset, "length": 1}
    tables = [{"name": "t", "rows": 1, "columns": [column]}]
    header = json.dumps({"attributes": {}, "tables": tables}).encode()
    path = tmp_path / "x.img"
    path.write_bytes(HEAD.pack(b"ETRACEDB", 1, len(header), 1024) + header.ljust(1000, b"\0"))
    with pytest.raises(EtraceError, match=r"x\.img"):
        reopen(path)


def test_an_image_without_a_column_of_the_schema_is_refused(tmp_path: Path) -> None:
    image = reopen(small_image(tmp_path))
    column = NewColumn("open", "<u8", array("Q", [0] * 3))
    for columns, words in (([], "no column open"), ([column], "is no <u4")):
        rewrite(open_image(image.path), [NewTable("path_opens", 3, columns)])
        with pytest.raises(EtraceError, match=words) as caught:
            reopen(image.path)
        assert "cas cache" in caught.value.hint


def test_columns_that_are_no_multiple_of_their_dtype_are_not_written(tmp_path: Path) -> None:
    column = NewColumn("a", "<u4", b"12345")
    with pytest.raises(ValueError, match="5 bytes are no <u4"):
        write_image(tmp_path / "x.img", {}, [NewTable("t", 1, [column])])
    assert list(tmp_path.iterdir()) == []


def test_a_real_image_is_right(tmp_path: Path) -> None:
    text, env, _, _ = parse_bytes(
        lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()), stat=False
    )
    files = name_files(tmp_path / "x")
    files.json.write_bytes(text)
    files.env.write_bytes(env)
    build_image(files)
    image = reopen(files.image)
    assert len(COLUMNS) > sum(len(table.columns) for table in image.tables.values())
    read_all(image)
