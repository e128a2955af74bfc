# SPDX-License-Identifier: Apache-2.0
"""`etrace report`: write one HTML page that shows a build."""

from __future__ import annotations

import argparse
from pathlib import Path

from etrace.cli.ending import tell
from etrace.cli.options.common import add_database
from etrace.cli.show.figures import size
from etrace.errors import UsageError
from etrace.nfsdb.store import open_database

DEFAULT = Path("build.html")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace report`."""
    add_database(parser)
    parser.add_argument(
        "place", metavar="DIR", nargs="?", type=Path,
        help="directory of the database, as --dbdir DIR",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=DEFAULT,
        help=f"the page (default: {DEFAULT})",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `etrace report`."""
    from etrace.cli.show.output import writing
    from etrace.report.page import render

    if args.place is not None and args.database is not None:
        raise UsageError("two databases are given", "leave out DB or --dbdir")
    image = open_database(args.place or args.database)
    text = render(image).encode()
    with writing(args.output, image.path) as stream:
        stream.write(text)
    tell(f"etrace: the report is {args.output} ({size(len(text))}); open it in a browser\n")
    return 0
