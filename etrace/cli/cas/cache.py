# SPDX-License-Identifier: Apache-2.0
"""`cas cache`: the image, made again when it is stale, damaged or of another schema."""

from __future__ import annotations

import argparse
import os

from etrace.cli.cas.parse import add_said
from etrace.cli.options.common import add_database


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas cache`."""
    add_database(parser)
    parser.add_argument(
        "--force", action="store_true", help="make it again even if it is up to date"
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


def run(args: argparse.Namespace) -> int:
    """Run `cas cache`."""
    text = update(args)
    if not args.quiet:
        print(text)
    return 0
