# SPDX-License-Identifier: Apache-2.0
"""Parquet files hold the tables of an image."""

from __future__ import annotations

from pathlib import Path

import databases
import pyarrow.parquet as pq
import pytest
from libetrace.image.file import Image

from etrace.export.parquet import write_parquet
from etrace.nfsdb.store import open_database
from etrace.query.rows.frames import Frames


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return open_database(databases.write_database(tmp_path_factory.mktemp("build")))


def test_parquet_files_hold_the_tables(image: Image, tmp_path: Path) -> None:
    frames = Frames(image)
    written = write_parquet(image, tmp_path / "new" / "parquet")
    assert sorted(path.stem for path in written) == sorted(frames)
    for path in written:
        assert pq.read_table(path).to_pylist() == frames[path.stem].to_pylist()
    assert sorted(tmp_path.glob("new/parquet/*")) == sorted(written)
