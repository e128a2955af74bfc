# SPDX-License-Identifier: Apache-2.0
"""A Parquet file -> its rows, unless they take much more memory than the file has bytes.

Pages are compressed, and a text that many rows share is there once: a file of some kilobytes may
hold gigabytes. The sizes that the file's own metadata states are compared with the limit before
anything is read; they may be wrong, so what was read is measured, too, some rows at a time. Texts
are read as numbers of a dictionary, and counted before each row gets its own.
"""

from __future__ import annotations

from typing import Any

from etrace.errors import EtraceError

#: of the rows of a table of a part, and of texts and lists in the metadata
MAX_BYTES, MAX_METADATA_BYTES, MAX_METADATA_ITEMS = 4 << 30, 64 << 20, 1 << 20
N_ROWS = 1 << 16


def read_rows(stream: Any, name: str, max_bytes: int = MAX_BYTES) -> Any:
    """Return the table of a file. EtraceError when it is damaged or unfolds beyond a limit."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(stream, **limits()) as opened:
            schema = opened.schema_arrow
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        stream.seek(0)
        with pq.ParquetFile(stream, read_dictionary=texts, **limits()) as file:
            stated = file.metadata
            n_stated = sum(
                max(0, stated.row_group(at).total_byte_size) for at in range(stated.num_row_groups)
            )
            _check(n_stated, max_bytes, name)
            found, n_bytes = [], 0
            for batch in file.iter_batches(N_ROWS, use_threads=False):
                n_bytes += sum(map(_unfolded_bytes, batch.columns))
                _check(n_bytes, max_bytes, name)
                found.append(batch)
            return pa.Table.from_batches(found, file.schema_arrow).cast(schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise EtraceError(
            f"{name}: damaged: {error}", "remove the part; then add its builds again"
        ) from error


def limits() -> dict[str, int]:
    """Return the limits of metadata, for pyarrow."""
    return {
        "thrift_string_size_limit": MAX_METADATA_BYTES,
        "thrift_container_size_limit": MAX_METADATA_ITEMS,
    }


def _unfolded_bytes(column: Any) -> int:
    """Return the bytes of a column when each row has its own text."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    return int(column.indices.nbytes) + int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _check(n_bytes: int, max_bytes: int, name: str) -> None:
    if n_bytes > max_bytes:
        raise EtraceError(
            f"{name}: its rows take more than {max_bytes:,} bytes",
            "remove the part; then add its builds again",
        )
