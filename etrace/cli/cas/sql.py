# SPDX-License-Identifier: Apache-2.0
"""`cas sql`: query the database in SQL with DuckDB."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from etrace.cli.options.common import add_database, add_examples, add_format
from etrace.cli.show.output import put
from etrace.errors import UsageError
from etrace.texts import CsvWriter

if TYPE_CHECKING:
    from etrace.query.sql import Rows


def add_rows_format(parser: argparse.ArgumentParser) -> None:
    """Add `--format` of what `show` prints, `--json` and `--csv`."""
    shown = parser.add_mutually_exclusive_group()
    add_format(shown, "text", "json", "csv")
    shown.add_argument(
        "--csv", dest="format", action="store_const", const="csv", help="as --format csv"
    )


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas sql`."""
    add_database(parser)
    parser.add_argument("statement", metavar="STATEMENT", nargs="?", help="the SQL statement")
    add_rows_format(parser)
    parser.add_argument(
        "--allow-files", action="store_true",
        help="let the statement read and write files and load extensions (default: refused)",
    )  # fmt: skip
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns")
    add_examples(
        parser,
        "cas sql --tables",
        "cas sql 'SELECT program, count(*) FROM executions GROUP BY 1 ORDER BY 2 DESC'",
    )


def _escaped(character: str) -> str:
    """Return a character as JSON escapes it; `json` leaves DEL unchanged."""
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def as_json(value: Any) -> str:
    """Return JSON in which everything but plain text is escaped: exact, and safe for terminals."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def cell(value: Any) -> str:
    """Return a value for a line of cells: tabs and newlines escaped, lists as JSON."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        return as_json(value)
    text = str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def print_cells(rows: Iterable[Sequence[Any]]) -> None:
    """Print lines of cells with tabs between them."""
    for row in rows:
        put("\t".join(map(cell, row)) + "\n")


def print_json(result: Rows) -> None:
    """Print an array, one object a line."""
    put("[")
    for number, row in enumerate(result.rows):
        entry = dict(zip(result.columns, row, strict=True))
        put(f"{',' if number else ''}\n{as_json(entry)}")
    put("\n]\n")


class Lines:
    """The stream of CsvWriter."""

    @staticmethod
    def write(text: str) -> None:
        """Write a line."""
        put(text)


def show(result: Rows, args: argparse.Namespace) -> None:
    """Print a result as the options say."""
    if args.format == "json":
        print_json(result)
    elif args.format == "csv":
        writer = CsvWriter(Lines)
        for row in (result.columns, *result.rows):
            writer.write(row)
    else:
        print_cells([result.columns])
        print_cells(result.rows)


def run(args: argparse.Namespace) -> int:
    """Run `cas sql`."""
    from etrace.cli.opening import open_found
    from etrace.query import sql

    if args.tables == (args.statement is not None):
        raise UsageError("give a statement, or --tables", "cas sql 'SELECT count(*) FROM opens'")
    image = open_found(args)
    if args.tables:
        print_cells([("table", "column", "type"), *sql.tables(image)])
    else:
        show(sql.ask(image, args.statement, allow_files=args.allow_files), args)
    return 0
