# SPDX-License-Identifier: Apache-2.0
"""`etrace FAMILY COMMAND`: commands of a command. A command's module is imported when it runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from etrace.cli.options.common import Parser
from etrace.errors import UsageError


@dataclass(frozen=True, slots=True)
class NestedCommand:
    """One `etrace FAMILY NAME`.

    Its module in the folder of the family has `declare_NAME(parser)` and `run_NAME(args) -> int`.
    """

    family: str
    name: str
    module: str
    summary: str

    def load(self) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[..., int]]:
        """Import the module; return what declares the command and what runs it."""
        module = importlib.import_module(f"etrace.cli.{self.family}.{self.module}")
        own = self.name.replace("-", "_")
        return getattr(module, f"declare_{own}"), getattr(module, f"run_{own}")

    def parser(self) -> Parser:
        """Return a parser with nothing declared yet."""
        description = f"{self.summary[0].upper()}{self.summary[1:]}."
        return Parser(prog=f"etrace {self.family} {self.name}", description=description)


def declare_family(
    parser: argparse.ArgumentParser, commands: Sequence[NestedCommand], about: str, epilog: str
) -> None:
    """Add the commands; each declares its own options when it is the one asked for."""
    family = commands[0].family
    width = max(len(command.name) for command in commands)
    listing = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in commands)
    parser.usage = f"etrace {family} [--help] COMMAND ..."
    parser.description = f"{about}\n\ncommands:\n{listing}"
    parser.epilog = epilog
    names = [command.name for command in commands]
    parser.set_defaults(print_help=parser.print_help)
    parser.add_argument(
        "nested", metavar="COMMAND", nargs="?", choices=names, help=argparse.SUPPRESS
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help=argparse.SUPPRESS)


def asked_for(args: argparse.Namespace, commands: Sequence[NestedCommand]) -> NestedCommand | None:
    """Return the command that was asked for; without one, list them."""
    if args.nested is None:
        args.print_help()
        return None
    return next(command for command in commands if command.name == args.nested)


#: status when no command was named
NONE_NAMED = UsageError.status
