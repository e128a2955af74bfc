# SPDX-License-Identifier: Apache-2.0
"""`etrace xray COMMAND`: reports on XRay logs. A command's module is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass
from types import ModuleType

from etrace.cli.options.common import add_unpacking
from etrace.cli.xray.watch import Watch
from etrace.errors import UsageError


@dataclass(frozen=True, slots=True)
class XrayCommand:
    """One `etrace xray NAME`; its module has `declare(parser)` and `run(args) -> int`."""

    name: str
    summary: str

    @property
    def module(self) -> str:
        """Name of its module."""
        return f"etrace.cli.xray.{self.name.replace('-', '_')}"


COMMANDS = (
    XrayCommand("account", "how often functions were called and how long they took"),
    XrayCommand("stack", "which stacks of calls took the time"),
    XrayCommand("flame", "a flame graph as one HTML file"),
    XrayCommand("graph", "which function called which, as DOT or SVG"),
    XrayCommand("graph-diff", "what changed between the call graphs of two logs"),
    XrayCommand("convert", "convert a log to YAML, JSON, CSV, Parquet, Perfetto, .."),
    XrayCommand("dump", "every record of a log with its offset"),
    XrayCommand("extract", "the instrumentation map of a program"),
    XrayCommand("join", "which execution of a build wrote a log"),
)
EPILOG = """\
a first look:
  etrace xray account -m PROGRAM xray-log.PROGRAM.*
  etrace xray flame -m PROGRAM xray-log.PROGRAM.* -o flame.html

`etrace xray COMMAND --help` explains a command.

exit status: 0 on success; 2 when part of a log was damaged, which is reported while the rest is
used, and for wrong usage; 1 on failure.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the commands; each declares its own options when it is the one asked for."""
    width = max(len(command.name) for command in COMMANDS)
    listing = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser.usage = "etrace xray [--help] COMMAND ..."
    parser.description = f"Read XRay logs.\n\ncommands:\n{listing}"
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    names = [command.name for command in COMMANDS]
    parser.set_defaults(print_help=parser.print_help)
    parser.add_argument(
        "xray_command", metavar="COMMAND", nargs="?", choices=names, help=argparse.SUPPRESS
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help=argparse.SUPPRESS)


def declare_command(command: XrayCommand, parser: argparse.ArgumentParser) -> ModuleType:
    """Add the options of a command, and return its module."""
    module = importlib.import_module(command.module)
    module.declare(parser)
    add_unpacking(parser)
    return module


def run(args: argparse.Namespace) -> int:
    """Run the command that was asked for; without one, list them."""
    from etrace.parse.unpacking import allowing

    if args.xray_command is None:
        args.print_help()
        return UsageError.status
    command = next(c for c in COMMANDS if c.name == args.xray_command)
    parser = argparse.ArgumentParser(
        prog=f"etrace xray {command.name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
    )
    module = declare_command(command, parser)
    parsed = parser.parse_args(args.rest)
    with allowing(parsed.max_unpacked), Watch() as parsed.watch:
        return int(module.run(parsed))
