# SPDX-License-Identifier: Apache-2.0
"""`cas export`: the database as `.nfsdb.json` or as Parquet files."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from etrace.cli.options import add_database
from etrace.errors import UsageError


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas export`."""
    add_database(parser)
    parser.add_argument("format", choices=("json", "parquet"), help="what to write")
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", type=Path,
        help="where the Parquet files go, one a table; made when it is not there",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path,
        help="where the JSON goes (default: standard output)",
    )  # fmt: skip


def export_json(args: argparse.Namespace) -> None:
    """Write `.nfsdb.json` with all products that the image has."""
    from etrace.nfsdb.files import replacing
    from etrace.nfsdb.store import open_database
    from etrace.nfsdb.to_json import write_json

    if args.directory is not None:
        raise UsageError("json goes to one file", f"cas export json -o {args.directory}")
    image = open_database(args.database)
    if args.output is None:
        write_json(image, sys.stdout.buffer)
        return
    with replacing(args.output) as stream:
        write_json(image, stream)


def export_parquet(args: argparse.Namespace) -> None:
    """Write a Parquet file for each table."""
    from etrace.export.parquet import write_parquet
    from etrace.nfsdb.store import open_database

    if args.directory is None or args.output is not None:
        raise UsageError("parquet goes to a directory", "cas export parquet DIR")
    written = write_parquet(open_database(args.database), args.directory)
    print(f"{len(written)} tables in {os.fspath(args.directory)}")


def run(args: argparse.Namespace) -> int:
    """Run `cas export`."""
    if args.format == "json":
        export_json(args)
    else:
        export_parquet(args)
    return 0
