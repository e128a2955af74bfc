# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet COMMAND`: many builds in one dataset; modules are imported when they run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from etrace.cli.nested import NONE_NAMED, NestedCommand, asked_for, declare_family

FAMILY = "fleet"
COMMANDS = (
    NestedCommand(FAMILY, "add", "add", "add a build to a fleet"),
    NestedCommand(FAMILY, "query", "ask", "answer a question about all builds"),
    NestedCommand(FAMILY, "sql", "ask", "query a fleet in SQL"),
    NestedCommand(FAMILY, "trends", "trends", "time, size or dependencies by commit, and changes"),
    NestedCommand(FAMILY, "closures", "closures", "dependencies of a file in many databases"),
    NestedCommand(FAMILY, "compact", "keep", "join small parts, so that queries are fast"),
    NestedCommand(FAMILY, "forget", "keep", "remove a build for good, or all before a date"),
)
EPILOG = """\
a first fleet:
  etrace fleet add --fleet /srv/fleet --create --build-id 1 --label commit=4f2a91c
  etrace fleet query --list

`etrace fleet COMMAND --help` explains a command; docs/fleet.md has the tables.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the commands; each declares its own options when it is the one asked for."""
    declare_family(parser, COMMANDS, "Collect many builds, and ask about all of them.", EPILOG)


def declare_command(
    command: NestedCommand, parser: argparse.ArgumentParser
) -> Callable[[argparse.Namespace], int]:
    """Add the options of a command, and return what runs it."""
    declare_own, run_own = command.load()
    declare_own(parser)
    return run_own


def run(args: argparse.Namespace) -> int:
    """Run the command that was asked for; without one, list them."""
    command = asked_for(args, COMMANDS)
    if command is None:
        return NONE_NAMED
    parser = command.parser()
    run_own = declare_command(command, parser)
    return run_own(parser.parse_args(args.rest))
