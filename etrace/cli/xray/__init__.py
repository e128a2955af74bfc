# SPDX-License-Identifier: Apache-2.0
"""`etrace xray COMMAND`: reports on XRay logs. A command's module is imported when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from etrace.cli.nested import NONE_NAMED, NestedCommand, asked_for, declare_family
from etrace.cli.options.common import add_unpacking
from etrace.cli.xray.options import Watch

FAMILY = "xray"
COMMANDS = (
    NestedCommand(
        FAMILY, "account", "account", "how often functions were called and how long they took"
    ),
    NestedCommand(FAMILY, "stack", "account", "which stacks of calls took the time"),
    NestedCommand(FAMILY, "flame", "account", "a flame graph as one HTML file"),
    NestedCommand(FAMILY, "graph", "graph", "which function called which, as DOT or SVG"),
    NestedCommand(
        FAMILY, "graph-diff", "graph", "what changed between the call graphs of two logs"
    ),
    NestedCommand(
        FAMILY, "convert", "records", "convert a log to YAML, JSON, CSV, Parquet, Perfetto, .."
    ),
    NestedCommand(FAMILY, "dump", "records", "every record of a log with its offset"),
    NestedCommand(FAMILY, "extract", "programs", "the instrumentation map of a program"),
    NestedCommand(FAMILY, "join", "programs", "which execution of a build wrote a log"),
)
EPILOG = """\
a first look:
  etrace xray account -m PROGRAM xray-log.PROGRAM.*
  etrace xray flame -m PROGRAM xray-log.PROGRAM.* -o flame.html

`etrace xray COMMAND --help` explains a command.

exit status: 0 on success; 1 when `join` finds no execution; 2 when part of a log was damaged,
which is reported while the rest is used, on failure and for wrong usage.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the commands; each declares its own options when it is the one asked for."""
    declare_family(parser, COMMANDS, "Read XRay logs.", EPILOG)


def declare_command(
    command: NestedCommand, parser: argparse.ArgumentParser
) -> Callable[[argparse.Namespace], int]:
    """Add the options of a command, and return what runs it."""
    declare, run = command.load()
    declare(parser)
    add_unpacking(parser)
    return run


def run(args: argparse.Namespace) -> int:
    """Run the command that was asked for; without one, list them."""
    from etrace.parse.unpacking import allowing

    command = asked_for(args, COMMANDS)
    if command is None:
        return NONE_NAMED
    parser = command.parser()
    run_command = declare_command(command, parser)
    parsed = parser.parse_args(args.rest)
    with allowing(parsed.max_unpacked), Watch() as parsed.watch:
        return run_command(parsed)
