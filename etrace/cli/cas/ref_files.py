# SPDX-License-Identifier: Apache-2.0
"""`cas ref_files`: paths of all files that were opened."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Opens, Paths
from etrace.query.given import chosen
from etrace.query.ref_files import ref_files


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas ref_files`."""
    selecting.add_all(parser, files=True)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths; with opens when more than the path of each is asked for."""
    given = selecting.given(args)
    if args.details or args.fmt:
        return Answer(Opens(image), chosen.opens(image, given))
    return Answer(Paths(), ref_files(image, given, original=args.original_path))
