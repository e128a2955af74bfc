# SPDX-License-Identifier: Apache-2.0
"""`cas linked_modules`: executables, shared objects and archives that the build made."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Executions, Modules
from etrace.query.linked_modules import linked_modules


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas linked_modules`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--commands", action="store_true", help="list the executions that linked them instead"
    )
    walking.add_copies(parser)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with modules, or with executions of linkers."""
    modules = linked_modules(image, selecting.given(args), with_copies=args.with_copies)
    if args.commands:
        rows = sorted({row for module in modules for row in module.executions})
        return Answer(Executions(image), rows)
    return Answer(Modules(image), modules)
