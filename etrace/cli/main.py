# SPDX-License-Identifier: Apache-2.0
"""Entry points. A command's module is imported only when that command runs: `--help` is instant."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import dataclass

from etrace import __version__
from etrace.cli.ending import guarded


@dataclass(frozen=True, slots=True)
class Command:
    """One `etrace NAME`."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("run", "etrace.cli.commands.run", "trace a command and everything it starts"),
    Command("start", "etrace.cli.commands.start", "trace by the kernel module from now on (root)"),
    Command("status", "etrace.cli.commands.status", "does a session run, has it lost anything"),
    Command("stop", "etrace.cli.commands.stop", "end the session and write its trace (root)"),
    Command("summary", "etrace.cli.commands.summary", "what a parsed build did, on one page"),
    Command("xray", "etrace.cli.xray", "read XRay logs: where programs spend their time"),
    Command(
        "doctor",
        "etrace.cli.commands.doctor",
        "which ways to capture work here, and why not the others",
    ),
    Command("completion", "etrace.cli.commands.completion", "what makes a shell complete etrace"),
)
SUMMARY = "see everything a Linux build did"
EPILOG = """\
a first trace:
  etrace run -- make -j8
  etrace_parser .nfsdb .nfsdb.json
  etrace summary
"""


def top_parser() -> argparse.ArgumentParser:
    """Declare `etrace` without a command: its help lists them."""
    width = max(len(c.name) for c in COMMANDS)
    listing = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser = argparse.ArgumentParser(
        prog="etrace",
        usage="etrace [--help] [--version] COMMAND ...",
        description=f"S{SUMMARY[1:]}.\n\ncommands:\n{listing}",
        epilog=EPILOG + "\n`etrace COMMAND --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"etrace {__version__}")
    parser.add_argument("command", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _find(parser: argparse.ArgumentParser, name: str) -> Command:  # noqa: RET503  error() exits
    for command in COMMANDS:
        if command.name == name:
            return command
    import difflib

    names = [c.name for c in COMMANDS]
    near = difflib.get_close_matches(name, names, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    parser.error(f"no command {name!r}; {hint}")


def etrace(argv: list[str] | None = None) -> int:
    """`etrace COMMAND ...`."""
    argv = sys.argv[1:] if argv is None else argv
    top = top_parser()
    if not argv:
        top.print_help()
        return 2
    command = _find(top, top.parse_args(argv[:1]).command)
    module = importlib.import_module(command.module)
    parser = argparse.ArgumentParser(prog=f"etrace {command.name}", description=command.summary)
    module.declare(parser)
    args = parser.parse_args(argv[1:])
    return guarded("etrace", lambda: int(module.run(args)))


def etrace_parser(argv: list[str] | None = None) -> int:
    """`etrace_parser INPUT... OUTPUT`."""
    from etrace.cli import parser

    return parser.main(argv)


def cas(argv: list[str] | None = None) -> int:
    """`cas MODULE ...`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli import cas as program  # in here, where Ctrl-C has its message already

        return program.main(words)

    return guarded("cas", run)
