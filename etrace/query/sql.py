# SPDX-License-Identifier: Apache-2.0
"""SQL -> rows, by DuckDB over the columns of an image. Needs duckdb and pyarrow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from libetrace.image.file import Image

from etrace.capture.features import ANALYTICS, install_hint
from etrace.errors import EtraceError
from etrace.query.rows.frames import Frames

N_ROWS = 4096  # fetched at a time
INTERRUPT_SECONDS = 0.05
TABLES_HINT = "the tables and their columns: cas sql --tables"
FILES_HINT = "if you trust the statement: --allow-files"
#: a statement sees the tables of the image and nothing else, and cannot change that
ALWAYS = ("SET python_enable_replacements = false",)
WITHOUT_FILES = ("SET enable_external_access = false", "SET lock_configuration = true")


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a statement; `rows` can be walked once."""

    columns: Sequence[str]
    rows: Iterator[tuple[Any, ...]]


def load_duckdb(command: str) -> Any:
    """Import duckdb for a command. EtraceError says how to install it."""
    try:
        import duckdb  # noqa: PLC0415  an extra
    except ImportError as error:
        raise EtraceError(
            f"{command} needs duckdb, which is not installed", install_hint(ANALYTICS)
        ) from error
    return duckdb


def _connect(image: Image, *, allow_files: bool) -> Any:
    duckdb = load_duckdb("cas sql")
    frames = Frames(image)
    connection = duckdb.connect()
    for name in frames:
        connection.register(name, frames[name])
    for setting in ALWAYS if allow_files else ALWAYS + WITHOUT_FILES:
        connection.execute(setting)
    return connection


def _called(connection: Any, call: Callable[[], Any]) -> Any:
    """Return what a call returns; what a signal raises meanwhile ends the statement.

    The call has a thread of its own, for Python runs the handlers of signals in the main one.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001  for who waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return future.result()
    finally:
        while not future.done():  # an interrupt that comes before its statement is lost
            connection.interrupt()
            wait([future], INTERRUPT_SECONDS)


def _fetch(connection: Any) -> Iterator[tuple[Any, ...]]:
    import duckdb  # noqa: PLC0415

    try:
        while rows := _called(connection, lambda: connection.fetchmany(N_ROWS)):
            yield from rows
    except duckdb.Error as error:  # a type that needs another package of Python, no memory, ..
        reason = str(error).partition("\n")[0]
        raise EtraceError(reason, "convert the column to text: CAST(.. AS VARCHAR)") from error
    finally:
        connection.close()


def ask(image: Image, statement: str, *, allow_files: bool = False) -> Rows:
    """Run a statement over the tables of an image. EtraceError says what DuckDB did not like.

    With `allow_files` it may read and write files, attach databases and load extensions.
    """
    return answer(_connect(image, allow_files=allow_files), statement)


def answer(
    connection: Any,
    statement: str,
    values: Mapping[str, Any] | None = None,
    hint: str = TABLES_HINT,
) -> Rows:
    """Run a statement with its values on a connection, which ends with the rows. EtraceError."""
    try:
        _execute(connection, statement, values, hint)
    except BaseException:
        connection.close()
        raise
    columns = [column[0] for column in connection.description or ()]
    return Rows(columns, _fetch(connection))


def _execute(connection: Any, statement: str, values: Mapping[str, Any] | None, hint: str) -> None:
    import duckdb  # noqa: PLC0415

    try:
        if len(connection.extract_statements(statement)) > 1:
            raise EtraceError("several statements at once", "give one statement")
        _called(connection, lambda: connection.execute(statement, values))
    except duckdb.PermissionException as error:
        raise EtraceError(str(error), FILES_HINT) from error
    except duckdb.Error as error:
        raise EtraceError(str(error), hint) from error


def tables(image: Image) -> Iterator[tuple[str, str, str]]:
    """Yield (table, column, type) of everything that can be asked for."""
    frames = Frames(image)
    for name in frames:
        for field in frames[name].schema:
            value = getattr(field.type, "value_type", field.type)
            text = "text" if str(value) == "large_string" else str(value)
            is_list = str(field.type).startswith("large_list")
            yield name, field.name, f"{text}[]" if is_list else text
