# SPDX-License-Identifier: Apache-2.0
"""A dataset -> views of DuckDB, and statements over them.

Files of a directory are read by DuckDB itself, those of an object store through pyarrow. A view
knows the files of its parts, so a part that is being written or replaced is never seen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from etrace.errors import EtraceError
from etrace.fleet.dataset import EVERYTHING, Dataset, Range
from etrace.fleet.parts import Reading
from etrace.fleet.schema import SQL_TYPES, TABLES, VERSION, FleetTable, arrow_schema
from etrace.query.sql import ALWAYS, Rows, answer, load_duckdb

HINT = "the tables and their columns: etrace fleet sql --tables"
ONLY_SELECT = "a fleet is only read: give one SELECT"


#: text -> an expression of SQL whose value it is
Quote = Callable[[str], str]


def literal(text: str) -> str:
    """Return a text as a literal of DuckDB's SQL, which has no other escapes."""
    return "'" + text.replace("'", "''") + "'"


def _list(texts: Sequence[str], quote: Quote = literal) -> str:
    return ", ".join(map(quote, texts))


def columns_at(table: FleetTable, version: int) -> str:
    """Return the columns of a table as parts of a version have them, null where they lack one."""
    return ", ".join(
        column.name if column.since <= version
        else f"CAST(NULL AS {SQL_TYPES[column.kind]}) AS {column.name}"
        for column in table.columns
    )  # fmt: skip


#: (table, parts) -> what reads their files in SQL
Source = Callable[[FleetTable, Sequence[Reading]], str]


def _condition(
    table: FleetTable, reading: Reading, wanted: Range, source: Source, quote: Quote
) -> str:
    """Return which rows of a part are read, empty for all."""
    found = []
    if reading.left_out:
        found.append(f"build NOT IN ({_list(sorted(reading.left_out.values()), quote)})")
    if not wanted.holds(reading.part):
        days = f"date BETWEEN {_day(wanted.since)} AND {_day(wanted.until or '9999-12-31')}"
        builds = source(TABLES["builds"], [reading])
        found.append(
            days if table.name == "builds"
            else f"build IN (SELECT build FROM {builds} WHERE {days})"  # noqa: S608
        )  # fmt: skip
    return " AND ".join(found)


def _day(text: str) -> str:
    return f"CAST({literal(text or '0001-01-01')} AS DATE)"


def view(
    table: FleetTable, readings: Sequence[Reading], source: Source, wanted: Range = EVERYTHING,
    quote: Quote = literal,
) -> str:  # fmt: skip
    """Return the SELECT of a table; `quote` is that of the engine.

    Parts that are read in full are one source for each version; the others have one each, without
    the builds that are left out or of other days.
    """
    full: defaultdict[int, list[Reading]] = defaultdict(list)
    selects = []
    for reading in readings:
        condition = _condition(table, reading, wanted, source, quote)
        if condition:
            columns = columns_at(table, reading.part.version)
            rows = source(table, [reading])
            selects.append(f"SELECT {columns} FROM {rows} WHERE {condition}")  # noqa: S608
        else:
            full[reading.part.version].append(reading)
    selects += [
        f"SELECT {columns_at(table, version)} FROM {source(table, own)}"  # noqa: S608
        for version, own in sorted(full.items())
    ]
    if not selects:
        none = ", ".join(f"CAST(NULL AS {SQL_TYPES[c.kind]}) AS {c.name}" for c in table.columns)
        return f"SELECT {none} WHERE false"
    return " UNION ALL ".join(selects)


def mentioned(statement: str) -> Iterator[FleetTable]:
    """Yield the tables that a statement may read."""
    words = set(re.findall(r"\w+", statement.lower()))
    yield from (table for name, table in TABLES.items() if name in words)


class Duck:
    """Answers statements over the builds of a range."""

    def __init__(self, dataset: Dataset, wanted: Range = EVERYTHING) -> None:
        self._duckdb = load_duckdb("etrace fleet")
        self._dataset, self._wanted = dataset, wanted

    def ask(
        self, statement: str, values: Mapping[str, Any] | None = None, *, is_trusted: bool = False
    ) -> Rows:
        """Run a SELECT. EtraceError says what DuckDB did not like.

        One that is not trusted can read the dataset and nothing else.
        """
        readings = self._dataset.readings(self._wanted)
        connection = self._duckdb.connect()
        try:
            for setting in ALWAYS:
                connection.execute(setting)
            for table in mentioned(statement):
                self._add_view(connection, table, readings)
            if not is_trusted:
                self._confine(connection, statement)
        except BaseException:
            connection.close()
            raise
        return answer(connection, statement, values, HINT)

    def _add_view(self, connection: Any, table: FleetTable, readings: Sequence[Reading]) -> None:
        select = view(table, readings, self._source(connection), self._wanted)
        connection.execute(f"CREATE VIEW {table.name} AS {select}")

    def _source(self, connection: Any) -> Source:
        store = self._dataset.store

        def of_files(table: FleetTable, readings: Sequence[Reading]) -> str:
            names = (store.file(reading.part, table.name) for reading in readings)
            return f"read_parquet([{_list(list(names))}], hive_partitioning = false)"

        def of_arrow(table: FleetTable, readings: Sequence[Reading]) -> str:
            import pyarrow as pa  # noqa: PLC0415  an extra
            from pyarrow import dataset  # noqa: PLC0415

            version = readings[0].part.version
            found = dataset.dataset(
                [store.file(reading.part, table.name) for reading in readings],
                filesystem=store.file_system(), format="parquet",
                schema=arrow_schema(table, pa, version),
            )  # fmt: skip
            name = f"_{table.name}_{readings[0].part.name.replace('-', '_')}_{version}"
            connection.register(name, found)
            return name

        return of_files if store.file_system() is None else of_arrow

    def _confine(self, connection: Any, statement: str) -> None:
        """Let a statement read this dataset and nothing else, and write nothing."""
        try:
            found = connection.extract_statements(statement)
        except self._duckdb.Error as error:
            raise EtraceError(str(error), HINT) from error
        if len(found) != 1 or found[0].type != self._duckdb.StatementType.SELECT:
            raise EtraceError("this is not one SELECT", ONLY_SELECT)
        place = literal(f"{self._dataset.store.place}/")
        if self._dataset.store.file_system() is None:
            connection.execute(f"SET allowed_directories = [{place}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def tables() -> Iterator[tuple[str, str, str, str]]:
    """Yield (table, column, type, meaning) of everything that can be asked for."""
    for table in TABLES.values():
        for column in table.at(VERSION):
            yield table.name, column.name, SQL_TYPES[column.kind], column.meaning
