# SPDX-License-Identifier: Apache-2.0
"""`cas revcomps_for`: compiled files whose compilation read a file."""

from __future__ import annotations

import argparse
import os

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Paths, whole
from etrace.query.revcomps_for import revcomps_for, revcomps_map


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas revcomps_for`."""
    selecting.add_all(parser, files=True)
    parser.add_argument(
        "--rcm",
        action="store_true",
        help="print a map from each file to the compiled files that read it",
    )


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths, or with one map."""
    given = selecting.given(args)
    if args.rcm:
        found = revcomps_map(image, given).items()
        return whole({os.fsdecode(f): [os.fsdecode(p) for p in paths] for f, paths in found})
    return Answer(Paths(), revcomps_for(image, given))
