# SPDX-License-Identifier: Apache-2.0
"""`cas compiled`: files that the build compiled."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options.compile_commands import tell_unlisted
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Executions, Paths
from etrace.export.commands.diagnosis import diagnose
from etrace.query.compiled import compilations, compiled


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas compiled`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--commands", action="store_true", help="list the executions that compiled them instead"
    )


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths, or with executions of compilers."""
    given = selecting.given(args)
    if given.is_everything:
        tell_unlisted(diagnose(image), "not listed:")
    if args.commands:
        execution = image["compilations"]["execution"]
        rows = [execution[row] for row in compilations(image, given)]
        return Answer(Executions(image), rows)
    return Answer(Paths(), compiled(image, given))
