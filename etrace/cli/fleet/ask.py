# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet query` and `etrace fleet sql`: questions about all builds."""

from __future__ import annotations

import argparse

from etrace.cli.cas.sql import add_rows_format, print_cells, show
from etrace.cli.fleet.options import add_fleet, add_master, add_range, opened, range_of
from etrace.cli.options.common import add_examples
from etrace.errors import UsageError


def declare_query(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet query`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the query")
    parser.add_argument("values", metavar="VALUE", nargs="*", help="what the query asks about")
    add_fleet(parser)
    parser.add_argument("--list", action="store_true", help="list the queries")
    parser.add_argument("--show-sql", action="store_true", help="print the statement of the query")
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"), default="duckdb",
        help="what runs the statement (default: %(default)s)",
    )  # fmt: skip
    add_master(parser)
    add_range(parser)
    add_rows_format(parser)
    add_examples(
        parser,
        "etrace fleet query products-with-file src/lvm.h --fleet /srv/fleet",
        "etrace fleet query time-by-label team --since 2026-10-01 --json",
    )


def run_query(args: argparse.Namespace) -> int:
    """Run `etrace fleet query`."""
    from etrace.fleet.questions import question, questions

    if args.list:
        if args.name is not None:
            raise UsageError("--list takes no query", "etrace fleet query --list")
        print_cells((each.usage, each.summary) for each in questions().values())
        return 0
    if args.name is None:
        raise UsageError("which query?", "etrace fleet query --list")
    asked = question(args.name)
    if args.show_sql:
        print_cells([[line] for line in asked.sql.splitlines()])
        return 0
    values = asked.values(args.values)
    if args.engine == "spark":
        from etrace.fleet.spark import Spark

        with Spark(opened(args), range_of(args), args.master) as spark:
            show(spark.ask(asked.sql, values), args)
        return 0
    from etrace.fleet.duck import Duck

    show(Duck(opened(args), range_of(args)).ask(asked.for_duckdb, values, is_trusted=True), args)
    return 0


def declare_sql(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet sql`."""
    parser.add_argument("statement", metavar="STATEMENT", nargs="?", help="a SELECT")
    add_fleet(parser)
    add_range(parser)
    add_rows_format(parser)
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns")
    add_examples(
        parser,
        "etrace fleet sql --tables",
        "etrace fleet sql 'SELECT project, count(*) FROM builds GROUP BY 1' --fleet /srv/fleet",
    )


def run_sql(args: argparse.Namespace) -> int:
    """Run `etrace fleet sql`."""
    from etrace.fleet.duck import Duck, tables

    if args.tables == (args.statement is not None):
        raise UsageError("give a statement, or --tables", "etrace fleet sql --tables")
    if args.tables:
        print_cells([("table", "column", "type", "meaning"), *tables()])
    else:
        show(Duck(opened(args), range_of(args)).ask(args.statement), args)
    return 0
