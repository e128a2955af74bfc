# SPDX-License-Identifier: Apache-2.0
"""Calls as a Parquet table, for pandas, Polars, DuckDB and Spark.

It needs pyarrow.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from etrace.capture.features import PYARROW, install_hint
from etrace.errors import EtraceError
from etrace.xray.log import ENDINGS, Log
from etrace.xray.session import Session

if TYPE_CHECKING:
    from etrace.xray.convert import Options

MISSING = "pyarrow is not installed"
ALTERNATIVE = "use --format csv, or "


def _table(pa: Any, session: Session, log: Log) -> Any:
    calls = log.calls(**session.options)
    clock, first = session.clock, session.first_tsc
    threads = log.threads
    functions = sorted(set(calls["function"]))
    place = {function: i for i, function in enumerate(functions)}
    names = pa.DictionaryArray.from_arrays(
        pa.array([place[f] for f in calls["function"]], pa.int32()),
        pa.array([session.names.name(f) for f in functions], pa.string()),
    )
    endings = pa.DictionaryArray.from_arrays(
        pa.array(calls["ending"], pa.int8()), pa.array(ENDINGS)
    )
    arrow = calls.arrow()
    columns = {
        "log": pa.DictionaryArray.from_arrays(
            pa.array([0] * len(calls["start"]), pa.int8()), pa.array([log.name])
        ),
        "process": pa.array([threads[t].process for t in calls["thread"]], pa.int32()),
        "thread": pa.array([threads[t].thread for t in calls["thread"]], pa.int32()),
        "function_id": arrow["function"],
        "function": names,
        "start_ns": pa.array([clock.ns(t - first) for t in calls["start"]], pa.int64()),
        "duration_ns": pa.array([clock.ns(t) for t in calls["ticks"]], pa.int64()),
        "self_ns": pa.array([clock.ns(t) for t in calls["self_ticks"]], pa.int64()),
        "depth": arrow["depth"],
        "parent": arrow["parent"],
        "ending": endings,
    }
    return pa.table(columns)


def write(session: Session, stream: IO[bytes], _options: Options) -> None:
    """Write one row group a log; `parent` is the row of the caller in its log, -1 at a root."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise EtraceError(MISSING, ALTERNATIVE + install_hint(PYARROW)) from error
    tables = [_table(pa, session, log) for log in session.logs]
    with parquet.ParquetWriter(stream, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
