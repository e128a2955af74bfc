# SPDX-License-Identifier: Apache-2.0
"""`cas commands`: executions that ran a program."""

from __future__ import annotations

import argparse

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options import sources as source_options
from etrace.cli.show import output
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import TARGETS, USED, ExecutionColumns, Executions, document
from etrace.errors import UsageError
from etrace.query.classes.kinds import Kinds
from etrace.query.compiled import sources
from etrace.query.executions import commands
from etrace.query.given.source_choice import SourceChoice
from etrace.query.targets import Targets
from etrace.query.usage import Usages, read_least


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas commands`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--usage", action="store_true",
        help="show CPU seconds, largest memory and I/O before each command, `-` where not known",
    )  # fmt: skip
    parser.add_argument(
        "--at-least", metavar="KEY=NUMBER", action="append", default=[],
        help="commands that used so much: cpu_ns=1s, max_rss_bytes=100MB, rchar_bytes=1GB, ..",
    )  # fmt: skip
    parser.add_argument(
        "--targets", action="store_true",
        help="show before each command what make or ninja ran it for, `-` where not known",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="PATTERN", action="append", default=[],
        help="commands that make or ninja ran for a target of this name: all, '*.o'",
    )  # fmt: skip
    group = parser.add_argument_group("output for other tools")
    group.add_argument(
        "--generate", action="store_true", help="write compile_commands.json of the compilations"
    )
    group.add_argument("--makefile", action="store_true", help="with --generate: write a Makefile")
    group.add_argument(
        "--all", action="store_true",
        help="include compilations of every source; with --makefile, all commands",
    )  # fmt: skip
    source_options.add_sources(group, with_all=False)
    group.add_argument(
        "--static",
        action="store_true",
        help="keep the names of programs in the Makefile, without $(CC)",
    )


def _generated(image: Image, args: argparse.Namespace, rows: list[int]) -> Answer:
    compilations, chosen = Kinds(image).compilations, source_options.choice(image, args, [])
    compiling = [row for row in rows if row in compilations]
    if not args.makefile:
        from etrace.export.compile_commands import entries

        found = entries(image, [compilations[row] for row in compiling], chosen)
        source_options.tell_left_out(chosen)
        return document(output.indented(found), found)
    from etrace.export.makefile import makefile

    if not args.all:
        rows = [row for row in compiling if _takes(image, chosen, compilations[row])]
        source_options.tell_left_out(chosen)
    text = makefile(image, rows, static=args.static)
    return document(text, {"makefile": text.decode(errors="surrogateescape")})


def _takes(image: Image, chosen: SourceChoice, compilation: int) -> bool:
    """Tell whether any source of a compilation is taken; each is counted."""
    taken = [source for source in sources(image, compilation) if chosen.takes(source)]
    return bool(taken)


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions, or with their form for another tool."""
    rows = commands(image, selecting.given(args))
    for least in args.at_least:
        rows = Usages(image).at_least(rows, *read_least(least))
    if args.target:
        rows = Targets(image).of_any(rows, args.target)
    if args.generate:
        return _generated(image, args, rows)
    for name in ("makefile", "all", "static", "existing", "below"):
        if getattr(args, name):
            raise UsageError(f"--{name} needs --generate")
    return Answer(_shape(image, args), rows)


def _shape(image: Image, args: argparse.Namespace) -> Executions:
    """Return what is shown before the command: nothing, or columns."""
    choices = ((USED, args.usage), (TARGETS, args.targets))
    columns = [column for column, is_wanted in choices if is_wanted]
    return ExecutionColumns(image, columns) if columns else Executions(image)
