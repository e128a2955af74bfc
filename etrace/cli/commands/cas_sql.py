# SPDX-License-Identifier: Apache-2.0
"""`cas sql`: asks the database in SQL, by DuckDB."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from etrace.cli.options import add_database
from etrace.errors import UsageError

if TYPE_CHECKING:
    from etrace.query.sql import Rows


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas sql`."""
    add_database(parser)
    parser.add_argument("statement", metavar="STATEMENT", nargs="?", help="what DuckDB is to run")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="an array of objects")
    shown.add_argument("--csv", action="store_true", help="comma-separated, with a header")
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns")


def cell(value: Any) -> str:
    """Return a value for a line of cells: tabs and newlines escaped, lists as JSON."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    text = str(value)
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def print_cells(rows: Iterable[Sequence[Any]]) -> None:
    """Print lines of cells with tabs between them."""
    for row in rows:
        print("\t".join(map(cell, row)))


def print_json(result: Rows) -> None:
    """Print an array, one object a line."""
    print("[", end="")
    for number, row in enumerate(result.rows):
        entry = dict(zip(result.columns, row, strict=True))
        text = json.dumps(entry, ensure_ascii=False, default=str)
        print(f"{',' if number else ''}\n{text}", end="")
    print("\n]")


def show(result: Rows, args: argparse.Namespace) -> None:
    """Print a result as the options say."""
    if args.json:
        print_json(result)
    elif args.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
    else:
        print_cells([result.columns])
        print_cells(result.rows)


def run(args: argparse.Namespace) -> int:
    """Run `cas sql`."""
    from etrace.nfsdb.store import open_database
    from etrace.query import sql

    if args.tables == (args.statement is not None):
        raise UsageError("give a statement, or --tables", "cas sql 'SELECT count(*) FROM opens'")
    image = open_database(args.database)
    if args.tables:
        print_cells([("table", "column", "type"), *sql.tables(image)])
    else:
        show(sql.ask(image, args.statement), args)
    return 0
