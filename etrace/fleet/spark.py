# SPDX-License-Identifier: Apache-2.0
"""A dataset -> views of Spark, and statements over them: the same texts as for DuckDB.

Needs pyspark and a Java runtime. The master may be this machine or a cluster; all workers must see
the dataset under the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Self

from etrace.capture.features import install_hint
from etrace.errors import EtraceError
from etrace.fleet.dataset import EVERYTHING, Dataset, Range
from etrace.fleet.duck import mentioned, view
from etrace.fleet.parts import Reading
from etrace.fleet.schema import FleetTable
from etrace.query.sql import Rows

#: mapInArrow imports pandas
LIBRARIES = ("pyspark", "pandas")
JAVA_HINT = "apt-get install default-jre-headless"
#: of what runs on this machine: small, quiet, and nothing that listens for others
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def literal(text: str) -> str:
    """Return an expression of Spark's SQL for a text: hexadecimal digits need no escapes."""
    return f"decode(unhex('{text.encode('utf-8', 'replace').hex()}'), 'UTF-8')"


def session(master: str, settings: Mapping[str, str] | None = None) -> Any:
    """Start Spark, or return the session of this process. EtraceError without it."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  an extra
    except ImportError as error:
        raise EtraceError(
            "this needs pyspark, which is not installed", install_hint(LIBRARIES)
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("etrace fleet")
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        started = builder.getOrCreate()
    except Exception as error:
        if "Java" in str(error) or "JAVA" in str(error):
            raise EtraceError("Spark finds no Java runtime", JAVA_HINT) from error
        raise
    started.sparkContext.setLogLevel("ERROR")
    return started


class Spark:
    """Answers statements over the builds of a range; a context manager that ends the session.

    With a `running` session it needs no context, and that session goes on.
    """

    def __init__(
        self, dataset: Dataset, wanted: Range = EVERYTHING, master: str = "local[*]",
        running: Any = None,
    ) -> None:  # fmt: skip
        if dataset.store.file_system() is not None:
            raise EtraceError(
                f"{dataset.store.place}: --engine spark reads directories that all workers see",
                "mount the bucket, or leave out --engine",
            )
        self._dataset, self._wanted, self._master = dataset, wanted, master
        self._session = running

    def __enter__(self) -> Self:
        self._session = session(self._master)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.stop()

    def ask(self, statement: str, values: Mapping[str, Any] | None = None) -> Rows:
        """Run a statement with values for its `:name`. EtraceError says what Spark did not like."""
        from pyspark.errors import PySparkException  # noqa: PLC0415  an extra

        readings = self._dataset.readings(self._wanted)
        try:
            for table in mentioned(statement):
                self._add_view(table, readings)
            frame = self._session.sql(statement, args=dict(values or {}))
            rows = [tuple(row) for row in frame.collect()]
        except PySparkException as error:
            raise EtraceError(str(error).partition("\n")[0], "etrace fleet sql --tables") from error
        return Rows(list(frame.columns), iter(rows))

    def _add_view(self, table: FleetTable, readings: Sequence[Reading]) -> None:
        numbers = count()

        def source(of: FleetTable, own: Sequence[Reading]) -> str:
            name = f"_{table.name}_{of.name}_{next(numbers)}"
            files = [self._dataset.store.file(reading.part, of.name) for reading in own]
            self._session.read.parquet(*files).createOrReplaceTempView(name)
            return name

        select = view(table, readings, source, self._wanted, literal)
        select = select.replace("VARCHAR", "STRING")  # it holds texts of a build in digits only
        self._session.sql(select).createOrReplaceTempView(table.name)
