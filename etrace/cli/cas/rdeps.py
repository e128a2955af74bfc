# SPDX-License-Identifier: Apache-2.0
"""`cas rdeps`: the linked modules that depend on files."""

from __future__ import annotations

import argparse

from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.cli.options import kinds as kind_options
from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Paths
from etrace.query.classes.file_kinds import LASTING, FileKinds
from etrace.query.rdeps import rdeps

#: it reads an image that was not scanned: see program.run_pipeline
CHECKS_ROWS = True


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas rdeps`."""
    walking.add_targets(parser)
    parser.add_argument(
        "--all", action="store_true",
        help="list every file that was made from FILE, not only linked modules",
    )  # fmt: skip
    kind_options.add_kinds(parser, with_all=False)
    walking.add_copies(parser)
    parser.add_argument(
        "--recursive", action="store_true", help="accepted for compatibility; it is the default"
    )
    walking.add_rules(parser)
    selecting.add_filter(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths."""
    rows = rdeps(
        Dependencies(image),
        walking.targets(args),
        walking.rules(args),
        is_exact=not args.fed,
        all_files=args.all or bool(args.kinds),
        with_copies=args.with_copies,
    )
    kept = kind_options.shown(FileKinds(image).of, args, selecting.kept(image, args, rows), LASTING)
    return Answer(Paths(), [image.path_string(row) for row in kept])
