# SPDX-License-Identifier: Apache-2.0
"""`etrace xray COMMAND`: reports on XRay logs. A command's module is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from etrace.cli.options.common import Parser, add_unpacking
from etrace.cli.xray.options import Watch
from etrace.errors import UsageError


@dataclass(frozen=True, slots=True)
class XrayCommand:
    """One `etrace xray NAME`; its module has `declare_NAME(parser)` and `run_NAME(args) -> int`."""

    name: str
    module: str
    summary: str

    def load(self) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[..., int]]:
        """Import the module; return what declares the command and what runs it."""
        module, own = importlib.import_module(f"etrace.cli.xray.{self.module}"), self.name
        own = own.replace("-", "_")
        return getattr(module, f"declare_{own}"), getattr(module, f"run_{own}")


COMMANDS = (
    XrayCommand("account", "account", "how often functions were called and how long they took"),
    XrayCommand("stack", "account", "which stacks of calls took the time"),
    XrayCommand("flame", "account", "a flame graph as one HTML file"),
    XrayCommand("graph", "graph", "which function called which, as DOT or SVG"),
    XrayCommand("graph-diff", "graph", "what changed between the call graphs of two logs"),
    XrayCommand("convert", "records", "convert a log to YAML, JSON, CSV, Parquet, Perfetto, .."),
    XrayCommand("dump", "records", "every record of a log with its offset"),
    XrayCommand("extract", "programs", "the instrumentation map of a program"),
    XrayCommand("join", "programs", "which execution of a build wrote a log"),
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
    width = max(len(command.name) for command in COMMANDS)
    listing = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser.usage = "etrace xray [--help] COMMAND ..."
    parser.description = f"Read XRay logs.\n\ncommands:\n{listing}"
    parser.epilog = EPILOG
    names = [command.name for command in COMMANDS]
    parser.set_defaults(print_help=parser.print_help)
    parser.add_argument(
        "xray_command", metavar="COMMAND", nargs="?", choices=names, help=argparse.SUPPRESS
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help=argparse.SUPPRESS)


def declare_command(
    command: XrayCommand, parser: argparse.ArgumentParser
) -> Callable[[argparse.Namespace], int]:
    """Add the options of a command, and return what runs it."""
    declare, run = command.load()
    declare(parser)
    add_unpacking(parser)
    return run


def run(args: argparse.Namespace) -> int:
    """Run the command that was asked for; without one, list them."""
    from etrace.parse.unpacking import allowing

    if args.xray_command is None:
        args.print_help()
        return UsageError.status
    command = next(c for c in COMMANDS if c.name == args.xray_command)
    parser = Parser(
        prog=f"etrace xray {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
    )
    run_command = declare_command(command, parser)
    parsed = parser.parse_args(args.rest)
    with allowing(parsed.max_unpacked), Watch() as parsed.watch:
        return run_command(parsed)
