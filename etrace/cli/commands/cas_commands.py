# SPDX-License-Identifier: Apache-2.0
"""`cas commands`: executions that have a program."""

from __future__ import annotations

import argparse

from libetrace.image import Image

from etrace.cli import output, selecting
from etrace.cli.answer import Answer
from etrace.cli.shapes import Executions, document
from etrace.errors import UsageError
from etrace.query.commands import commands
from etrace.query.kinds import Kinds


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas commands`."""
    selecting.add_all(parser)
    group = parser.add_argument_group("for other tools")
    group.add_argument(
        "--generate", action="store_true", help="compile_commands.json of those that compiled"
    )
    group.add_argument("--makefile", action="store_true", help="with --generate: a Makefile")
    group.add_argument("--all", action="store_true", help="a Makefile of all commands")
    group.add_argument(
        "--static", action="store_true", help="a Makefile without $(CC), with names as they were"
    )


def _generated(image: Image, args: argparse.Namespace, rows: list[int]) -> Answer:
    if not args.makefile:
        from etrace.export.compile_commands import entries

        compilations = Kinds(image).compilations
        found = entries(image, [compilations[row] for row in rows if row in compilations])
        return document(output.indented(found), found)
    from etrace.export.makefile import makefile

    chosen = rows if args.all else [row for row in rows if row in Kinds(image).compilations]
    text = makefile(image, chosen, static=args.static)
    return document(text, {"makefile": text.decode(errors="surrogateescape")})


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions, or with what they are for another tool."""
    rows = commands(image, selecting.given(args))
    if args.generate:
        return _generated(image, args, rows)
    for name in ("makefile", "all", "static"):
        if getattr(args, name):
            raise UsageError(f"--{name} needs --generate")
    return Answer(Executions(image), rows)
