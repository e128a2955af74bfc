# SPDX-License-Identifier: Apache-2.0
"""Tables of an image go out by the Arrow C data interface unchanged."""

from __future__ import annotations

import gc
import json
import lzma
from array import array
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from databases import parse_bytes
from libetrace.image.file import Image, NewColumn, NewTable, Table, open_image

from etrace.nfsdb.build import build_image
from etrace.nfsdb.files import name_files
from etrace.nfsdb.products import rewrite

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def image_of(folder: Path, text: bytes, env: bytes = b"{}") -> Image:
    files = name_files(folder / "x")
    files.json.write_bytes(text)
    files.env.write_bytes(env)
    build_image(files)
    return open_image(files.image)


@pytest.fixture
def lua(tmp_path: Path) -> Image:
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    text, env, _ = parse_bytes(trace)
    return image_of(tmp_path, text, env)


def address(view: memoryview) -> int:
    return int(pa.py_buffer(view).address)


def arrow_names(table: Table) -> list[str]:
    names = []
    for name in table.columns:
        stem = name.removesuffix(".start")
        names += [name] if stem == name else [f"{stem}_start", f"{stem}_end"]
    return names


def test_every_table_has_its_columns_and_values(lua: Image) -> None:
    for name, table in lua.tables.items():
        if name == "strings":
            continue
        batch = pa.record_batch(table)
        batch.validate(full=True)
        assert batch.num_rows == table.n_rows
        assert batch.schema.names == arrow_names(table)
        for column, view in table.columns.items():
            stem = column.removesuffix(".start")
            if stem == column:
                assert batch.column(column).to_pylist() == list(view)
            else:
                assert batch.column(f"{stem}_start").to_pylist() == list(view)[:-1]
                assert batch.column(f"{stem}_end").to_pylist() == list(view)[1:]


def test_columns_are_not_copied(lua: Image) -> None:
    for name, table in lua.tables.items():
        batch = pa.record_batch(table)
        for column, view in table.columns.items():
            if not len(view) or name == "strings":
                continue
            stem = column.removesuffix(".start")
            for shown in [column] if stem == column else [f"{stem}_start", f"{stem}_end"]:
                assert batch.column(shown).buffers()[1].address == address(view)


def test_strings_are_one_column_of_binaries_over_the_same_memory(lua: Image) -> None:
    table = lua["strings"]
    batch = pa.record_batch(table)
    text = batch.column("text")
    assert text.type == pa.large_binary()
    assert text.to_pylist() == [lua.string(row) for row in range(table.n_rows)]
    _, offsets, data = text.buffers()
    assert (offsets.address, data.address) == (address(table["start"]), address(table["bytes"]))


def test_units_and_meanings_are_metadata(lua: Image) -> None:
    field = pa.schema(lua["opens"]).field("size")
    assert field.metadata == {
        b"unit": b"bytes",
        b"meaning": b"by lstat of the original path, else of the resolved one",
    }
    assert pa.schema(lua["opens"]).field("path").metadata == {
        b"meaning": b"row of `paths`: resolved"
    }


def test_a_table_is_a_stream_of_one_batch(lua: Image) -> None:
    reader = pa.RecordBatchReader.from_stream(lua["opens"])
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [lua["opens"].n_rows]
    assert pa.table(lua["opens"]).equals(pa.Table.from_batches(batches))


def test_a_batch_outlives_the_image(lua: Image) -> None:
    paths = list(lua["opens"]["path"])
    batch: Any = pa.record_batch(lua["opens"])
    column = batch.column("path")
    lua.path.unlink()
    lua.close()
    del batch
    gc.collect()
    assert column.to_pylist() == paths


def test_memory_is_given_back_when_all_is_released(lua: Image) -> None:
    mapped = lua._map
    batch: Any = pa.record_batch(lua["opens"])
    stream: Any = lua["opens"].__arrow_c_stream__()
    lua.tables = {}
    gc.collect()
    with pytest.raises(BufferError):
        mapped.close()
    del batch, stream
    gc.collect()
    mapped.close()
    assert mapped.closed


def test_capsules_that_nobody_takes_are_released(lua: Image) -> None:
    mapped = lua._map
    for _ in range(3):
        lua["executions"].__arrow_c_array__()
        lua["executions"].__arrow_c_schema__()
        lua["executions"].__arrow_c_stream__()
    lua.tables = {}
    gc.collect()
    mapped.close()
    assert mapped.closed


def test_empty_tables_have_columns(tmp_path: Path) -> None:
    image = image_of(tmp_path, b"[]")
    for name, table in image.tables.items():
        batch = pa.record_batch(table)
        batch.validate(full=True)
        assert batch.num_rows == 0
        assert batch.schema.names == (["text"] if name == "strings" else arrow_names(table))


def test_strings_with_wrong_offsets_are_refused(tmp_path: Path) -> None:
    image = image_of(tmp_path, b"[]")
    for offsets in ([0, 5, 2], [0, 1, 99]):
        start = NewColumn("start", "<u8", array("Q", offsets))
        strings = NewTable("strings", 2, [start, NewColumn("bytes", "|u1", b"abc")])
        rewrite(open_image(image.path), [strings])
        with pytest.raises(ValueError, match="offsets of strings are damaged"):
            pa.record_batch(open_image(image.path)["strings"])


def test_a_table_made_by_hand_with_a_short_column_is_refused(lua: Image) -> None:
    table = lua["opens"]
    short = Table(table.name, table.n_rows + 1, table.columns, table.infos)
    with pytest.raises(ValueError, match=r"opens\.path is shorter than its table"):
        pa.record_batch(short)


def test_a_table_is_what_json_says(tmp_path: Path) -> None:
    entries = [{"p": 7, "x": i, "s": i * 10, "!": 3} for i in range(3)]
    image = image_of(tmp_path, json.dumps(entries).encode())
    batch = pa.record_batch(image["executions"])
    assert batch.column("start_ns").to_pylist() == [0, 10, 20]
    assert batch.column("status").to_pylist() == [3, 3, 3]
    assert batch.column("parent").to_pylist() == [-1, -1, -1]
