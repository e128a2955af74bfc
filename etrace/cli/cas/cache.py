# SPDX-License-Identifier: Apache-2.0
"""`cas cache`: the image, made again when it is stale, damaged or of another schema; its graph."""

from __future__ import annotations

import argparse
import os

from etrace.cli.cas.parse import add_said
from etrace.cli.options.common import add_database


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas cache`."""
    add_database(parser)
    parser.add_argument(
        "--force", action="store_true", help="make the database again even if it is up to date"
    )
    parser.add_argument(
        "--set-root", metavar="DIR", help="where the build began (default: as traced)"
    )
    parser.add_argument(
        "--set-version", metavar="TEXT", help="the version that `cas version` prints"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def update(args: argparse.Namespace) -> str:
    """Bring the image up to date; returns the line about it."""
    from etrace.nfsdb.cache import update_image
    from etrace.nfsdb.files import locate

    files = locate(args.database)
    made = update_image(files, add_said(args), force=args.force)
    return f"{os.path.relpath(files.image)}: {'made' if made else 'unchanged'}"


def add_graph(args: argparse.Namespace) -> str:
    """Make the dependency graph when the image lacks it; return the line to print."""
    from libetrace.depend.configuration import load

    from etrace.nfsdb.store import open_database
    from etrace.postprocess.run import Result, postprocess

    image = open_database(args.database)
    results: list[Result] = []
    postprocess(image, load(image.path.parent), ("graph",), force=args.force, report=results.append)
    return f"graph: {results[0].text or 'unchanged'}"


def run(args: argparse.Namespace) -> int:
    """Run `cas cache`."""
    for step in (update, add_graph):
        text = step(args)
        if not args.quiet:
            print(text)
    return 0
