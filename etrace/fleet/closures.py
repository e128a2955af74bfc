# SPDX-License-Identifier: Apache-2.0
"""Databases of many builds -> the dependencies of a file in each: one task a database.

Each task walks with the engine of `cas deps`, on this machine in processes or in a job of Spark.
A database that cannot be read is a row with its error, and the others are answered.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from libetrace.core.errors import Error
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies

from etrace.errors import EtraceError
from etrace.nfsdb.store import open_database
from etrace.query.dependencies import deps
from etrace.texts import text_of

#: database, file that it depends on, error: one of the last two is null
Row = tuple[str, str | None, str | None]
SCHEMA = "database string, path string, error string"
COLUMNS = ("database", "path", "error")
#: rows that a task hands over at once
N_ROWS = 1 << 16


def closure(database: str, name: str) -> list[Row]:
    """Return the rows of one database; an error is a row."""
    try:
        image = open_database(Path(database))
        root = os.fsencode(image.attributes.get("source_root", ""))
        path = os.path.normpath(os.path.join(root, os.fsencode(name)))  # noqa: PTH118  bytes
        found = deps(Dependencies(image), [path], Rules())
    except (EtraceError, Error) as error:
        return [(database, None, error.message)]
    except OSError as error:
        return [(database, None, f"{error.filename or database}: {error.strerror or error}")]
    below = root.rstrip(b"/") + b"/"
    return [(database, text_of(each.removeprefix(below)), None) for each in found]


def _closures(own: tuple[str, str]) -> list[Row]:
    return closure(*own)


def _die_of_signals() -> None:
    """Let a process end at once, and leave the message to the command that it works for."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def by_processes(databases: Sequence[str], name: str, n_jobs: int = 0) -> Iterator[Row]:
    """Yield the rows of all databases in their order, by processes of this machine.

    They are ended when the rows are not read to the end: at an error or a signal.
    """
    n_jobs = min(n_jobs or os.cpu_count() or 1, max(1, len(databases)))
    with get_context("spawn").Pool(n_jobs, _die_of_signals) as pool:
        for rows in pool.imap(_closures, [(database, name) for database in databases]):
            yield from rows


class Walk:
    """What a task of Spark runs over the databases of its partition; workers import this module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turn batches of databases into batches of rows."""
        import pyarrow as pa  # noqa: PLC0415  an extra

        schema = pa.schema([(name, pa.string()) for name in COLUMNS])
        for batch in batches:
            for database in batch.column(0).to_pylist():
                rows = closure(database, self._name)
                for begin in range(0, len(rows), N_ROWS):
                    columns = zip(*rows[begin : begin + N_ROWS], strict=True)
                    arrays = [pa.array(column, pa.string()) for column in columns]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def by_spark(session: Any, databases: Sequence[str], name: str) -> Iterator[Row]:
    """Yield the rows of all databases by one job; a task that dies with its worker runs again."""
    if not databases:
        return
    context = session.sparkContext
    numbered = context.parallelize([(each,) for each in databases], len(databases))
    frame = session.createDataFrame(numbered, "database string")
    rows = [tuple(row) for row in frame.mapInArrow(Walk(name), SCHEMA).collect()]
    order = {database: at for at, database in enumerate(databases)}
    yield from sorted(rows, key=lambda row: (order[row[0]], row[1] or ""))
