# SPDX-License-Identifier: Apache-2.0
"""`cas commands`, `execs`, `tree` and `binaries`: the programs that the build ran."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.cli.options import compile_commands as command_options
from etrace.cli.options import selection as selecting
from etrace.cli.options.common import add_examples, positive
from etrace.cli.show import output
from etrace.cli.show.answer import Answer, Style
from etrace.cli.show.shapes import (
    TARGETS,
    USED,
    Binaries,
    ExecutionColumns,
    ExecutionOutputs,
    Executions,
    document,
)
from etrace.errors import UsageError
from etrace.query.compilations import sources
from etrace.query.executions import Node, binaries, commands, execs, tree
from etrace.query.rows.classes import Classes
from etrace.query.rows.targets import Targets
from etrace.query.rows.usage import Usages, read_least
from etrace.query.select.sources import SourceSelection
from etrace.spec.database import NONE

# ---- commands ----


def declare_commands(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas commands`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--with-usage", dest="usage", action="store_true",
        help="show CPU seconds, largest memory and I/O before each command, `-` where not known",
    )  # fmt: skip
    parser.add_argument(
        "--at-least", metavar="KEY=NUMBER", action="append", default=[],
        help="only commands that used at least this: cpu_ns=1s, max_rss_bytes=100MB, "
        "rchar_bytes=1GB, ..",
    )  # fmt: skip
    parser.add_argument(
        "--with-targets", dest="targets", action="store_true",
        help="show before each command what make or ninja ran it for, `-` where not known",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="PATTERN", action="append", default=[],
        help="only commands that make or ninja ran for targets of this name: all, '*.o'",
    )  # fmt: skip
    parser.add_argument(
        "--with-output", dest="written", action="store_true",
        help="show below each command what it wrote to standard error (2|) and output (1|)",
    )  # fmt: skip
    parser.add_argument(
        "--failed", action="store_true",
        help="only commands that ended with a status other than 0",
    )  # fmt: skip
    group = parser.add_argument_group("output for other tools")
    group.add_argument(
        "--generate",
        action="store_true",
        help="write compile_commands.json of them, as `cas export compile_commands` does",
    )
    group.add_argument(
        "--makefile",
        action="store_true",
        help="with --generate: write a Makefile; --all-sources: of all commands",
    )
    command_options.add_sources(group)
    group.add_argument(
        "--static",
        action="store_true",
        help="keep the names of programs in the Makefile, without $(CC)",
    )
    add_examples(
        parser,
        "cas commands --command-filter '[cmd=*-O3*,type=wc]'",
        "cas commands --with-usage --json",
    )


def _generated(image: Image, args: argparse.Namespace, rows: list[int]) -> Answer:
    compilations, chosen = (
        Classes(image).compilations,
        command_options.source_selection(image, args, []),
    )
    compiling = [row for row in rows if row in compilations]
    if not args.makefile:
        from etrace.export.compile_commands import entries

        found = entries(image, [compilations[row] for row in compiling], chosen)
        command_options.report_left_out(chosen)
        return document(output.indented(found), found)
    from etrace.export.makefile import makefile

    if not args.all:
        rows = [row for row in compiling if _takes(image, chosen, compilations[row])]
        command_options.report_left_out(chosen)
    text = makefile(image, rows, static=args.static)
    return document(text, {"makefile": text.decode(errors="surrogateescape")})


def _takes(image: Image, chosen: SourceSelection, compilation: int) -> bool:
    """Return whether any source of a compilation is taken; each is counted."""
    taken = [source for source in sources(image, compilation) if chosen.takes(source)]
    return bool(taken)


def answer_commands(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions, or with their form for another tool."""
    rows = commands(image, selecting.selection_of(args))
    for least in args.at_least:
        rows = Usages(image).at_least(rows, *read_least(least))
    if args.failed:
        status = image["executions"]["status"]
        rows = [row for row in rows if status[row] not in (0, NONE)]
    if args.target:
        rows = Targets(image).of_any(rows, args.target)
    if args.generate:
        return _generated(image, args, rows)
    for name in ("makefile", "all", "static", "existing", "below"):
        if getattr(args, name):
            option = "all-sources" if name == "all" else name
            raise UsageError(f"--{option} needs --generate")
    return Answer(_shape(image, args), rows)


def _shape(image: Image, args: argparse.Namespace) -> Executions:
    """Return what is shown before the command: nothing, or columns."""
    choices = ((USED, args.usage), (TARGETS, args.targets))
    columns = [column for column, is_wanted in choices if is_wanted]
    if args.written:
        return ExecutionOutputs(image, columns)
    return ExecutionColumns(image, columns) if columns else Executions(image)


# ---- execs ----


def declare_execs(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas execs`."""
    selecting.add_all(parser)
    add_examples(parser, "cas execs --count", "cas execs --binary /usr/bin/ld --json")


def answer_execs(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with executions."""
    return Answer(Executions(image), execs(image, selecting.selection_of(args)))


# ---- tree ----


#: deeper nodes say their depth: a chain of processes would be as wide as it is long
MAX_INDENTED = 64


def _indent(depth: int) -> bytes:
    if depth <= MAX_INDENTED:
        return b"  " * depth
    return b"  " * MAX_INDENTED + b"(%d) " % depth


class _Nodes:
    """Entries are nodes; plain ones are indented by their depth."""

    feeds, styles = Executions.feeds, Executions.styles

    def __init__(self, image: Image) -> None:
        self._executions = Executions(image)

    def plain(self, item: Node, style: Style) -> bytes:
        """Return the command, indented."""
        command = self._executions.plain(item.execution, style)
        return _indent(item.depth) + (command or b"(no command)")

    def details(self, item: Node, style: Style) -> bytes:
        """Return all that is known of the execution, indented."""
        return _indent(item.depth) + self._executions.details(item.execution, style)

    def entry(self, item: Node, style: Style) -> Mapping[str, Any]:
        """Return the execution with its depth."""
        return {"depth": item.depth, **self._executions.record(item.execution, style)}

    record = entry

    def feed(self, item: Node, option: str) -> bytes:
        """Return the execution, or its program."""
        return self._executions.feed(item.execution, option)


def declare_tree(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas tree`."""
    selecting.add_all(parser)
    parser.add_argument("--levels", type=positive, metavar="N", help="at most N levels")
    add_examples(parser, "cas tree --levels 2", "cas info root-pid tree")


def answer_tree(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with the tree below the chosen executions, or all of it."""
    return Answer(_Nodes(image), tree(image, selecting.selection_of(args), n_levels=args.levels))


# ---- binaries ----


def declare_binaries(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas binaries`."""
    selecting.add_all(parser)
    add_examples(parser, "cas binaries", "cas binaries commands --count")


def answer_binaries(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths of programs."""
    return Answer(Binaries(), binaries(image, selecting.selection_of(args)))
