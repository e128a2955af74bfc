# SPDX-License-Identifier: Apache-2.0
"""Tables of an image -> one Parquet file each. Needs pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from libetrace.core.folders import narrow, opened_folder
from libetrace.image.file import Image, replacing

from etrace.query.rows.frames import Frames

#: rows of a row group, which is held in memory as plain text
N_ROWS = 1 << 17


def _plain(batch: Any, pa: Any) -> Any:
    """Return a batch with plain text in place of dictionaries of all strings."""
    columns = [
        c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _write(table: Any, stream: BinaryIO) -> None:
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    types = (
        (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    )
    schema = pa.schema(list(types))
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in table.to_batches(N_ROWS):
            writer.write_batch(_plain(batch, pa))


def write_parquet(image: Image, directory: Path) -> list[Path]:
    """Write each table of an image as DIRECTORY/TABLE.parquet; returns the files.

    A file appears whole or not at all; no link of another user is followed to the directory.
    EtraceError without pyarrow, OSError.
    """
    frames = Frames(image)
    with opened_folder(directory, make=True):
        pass  # each file looks for itself where it goes
    written = []
    for name in frames:
        path = directory / f"{name}.parquet"
        with replacing(path, models=[image.path]) as stream:
            narrow(stream.fileno(), [image.path])  # there is a table of environments
            _write(frames[name], stream)
        written.append(path)
    return written
