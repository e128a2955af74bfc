# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet closures`: the dependencies of a file in many databases at once."""

from __future__ import annotations

import argparse

from etrace.cli.cas.sql import add_rows_format, show
from etrace.cli.ending import say
from etrace.cli.fleet.options import add_master
from etrace.cli.options.common import add_examples, add_jobs
from etrace.errors import EtraceError, NothingFoundError
from etrace.figures import count


def declare_closures(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet closures`."""
    parser.epilog = (
        "exit status: 0, 1 when no database has the file, 2 when a database could not be read: it "
        "has a row with the error, and the others are answered.\n"
    )
    parser.add_argument("file", metavar="FILE", help="a path, or one below each source root")
    parser.add_argument("databases", metavar="DIR", nargs="+", help="a database of each build")
    parser.add_argument(
        "--engine", choices=("processes", "spark"), default="processes",
        help="what runs the walks (default: %(default)s)",
    )  # fmt: skip
    add_master(parser)
    add_jobs(parser)
    add_rows_format(parser)
    add_examples(
        parser, "etrace fleet closures src/lua builds/1 builds/2",
        "etrace fleet closures src/lua builds/1 builds/2 --engine spark --master spark://host:7077",
    )  # fmt: skip


def run_closures(args: argparse.Namespace) -> int:
    """Run `etrace fleet closures`."""
    from pathlib import Path

    from etrace.fleet.closures import COLUMNS, by_processes, by_spark
    from etrace.query.sql import Rows

    databases = list(dict.fromkeys(str(Path(each).absolute()) for each in args.databases))
    if args.engine == "spark":
        from etrace.fleet.spark import session

        started = session(args.master)
        try:
            rows = list(by_spark(started, databases, args.file))
        finally:
            started.stop()
    else:
        rows = list(by_processes(databases, args.file, args.jobs))
    show(Rows(COLUMNS, iter(rows)), args)
    failed = {row[0] for row in rows if row[2] is not None}
    if failed:
        say(f"etrace: {count(len(failed), 'database')} of {len(databases)} not answered\n")
    if len(failed) == len(databases):
        return NothingFoundError.status
    return EtraceError.status if failed else 0
