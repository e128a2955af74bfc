# SPDX-License-Identifier: Apache-2.0
"""Parquet files that unfold: a limit refuses them before they fill the memory."""

from __future__ import annotations

import io
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etrace.errors import EtraceError
from etrace.fleet.unfolding import read_rows


def written(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, compression="zstd", row_group_size=1 << 20)
    return path


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2, None], "text": ["a", None, "a"], "list": [["x"], [], None]})
    path = written(table, tmp_path / "a.parquet")
    with path.open("rb") as stream:
        assert read_rows(stream, "a").equals(table)
    with path.open("rb") as stream, pytest.raises(EtraceError, match="a: its rows take more than"):
        read_rows(stream, "a", 20)


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    with written(table, tmp_path / "a.parquet").open("rb") as stream:
        assert read_rows(stream, "a").equals(table)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"x" * 1000])
def test_a_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(EtraceError, match=r"^part/opens: damaged: "):
        read_rows(io.BytesIO(data), "part/opens")


@pytest.mark.parametrize("kind", ["text", "number"])
def test_a_small_file_of_gigabytes_is_refused(tmp_path: Path, kind: str) -> None:
    """A text of a megabyte in each of ten thousand rows, or as many numbers."""
    path = tmp_path / "a.parquet"
    if kind == "text":
        rows = pa.array([0] * 10_000, pa.int32())
        text = pa.DictionaryArray.from_arrays(rows, ["x" * 1_000_000])
        pq.write_table(pa.table({"text": text}), path, compression="zstd", store_schema=False)
    else:
        table = pa.table({"n": pa.nulls(1 << 20, pa.int64()).fill_null(0)})
        with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False) as file:
            for _ in range(64):
                file.write_table(table)
    assert path.stat().st_size < 1 << 21
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as stream, pytest.raises(EtraceError, match="its rows take more than"):
        read_rows(stream, "a", 256 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10
