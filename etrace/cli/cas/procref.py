# SPDX-License-Identifier: Apache-2.0
"""`cas procref`: files that processes opened."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Opens, Paths
from etrace.query.given import chosen
from etrace.query.procref import procref


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas procref`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--with-children", action="store_true", help="include the processes that they started"
    )


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths; with opens when more than the path of each is asked for."""
    rows = procref(image, selecting.given(args), with_children=args.with_children)
    if args.details or args.fmt:
        return Answer(Opens(image), rows)
    return Answer(Paths(), chosen.paths(image, rows, original=args.original_path))
