# SPDX-License-Identifier: Apache-2.0
"""`cas unused DIR`: sources that the build never read."""

from __future__ import annotations

import argparse
from pathlib import Path

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Paths
from etrace.query.unused import unused


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the argument of `cas unused`."""
    parser.add_argument(
        "directory", metavar="DIR", type=Path, nargs="?", default=Path(),
        help="where to look (default: here)",
    )  # fmt: skip


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths."""
    return Answer(Paths(), unused(image, args.directory))
