# SPDX-License-Identifier: Apache-2.0
"""Entry points. A command's module is imported only when that command runs: `--help` is instant.

What `etrace run` needs is imported before a build begins: no argparse, no dataclasses, no pathlib.
"""

from __future__ import annotations

import sys

from etrace.cli import early

early.settle()

from etrace.cli.ending import guarded  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from types import ModuleType


class Command:
    """One `etrace NAME`; its module has `declare(parser)` and `run(args) -> int`.

    A module may have `read(words)`, which returns the same as argparse, or None to use argparse.
    """

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS = (
    Command("run", "etrace.cli.etrace.run", "trace a command and everything it starts"),
    Command("start", "etrace.cli.etrace.start", "start tracing with the kernel module (root)"),
    Command("status", "etrace.cli.etrace.status", "show the session and what it lost"),
    Command("stop", "etrace.cli.etrace.stop", "end the session and write its trace (root)"),
    Command("import", "etrace.cli.etrace.import_", "make a trace from another tool's log"),
    Command("top", "etrace.cli.top", "watch a build that is being traced"),
    Command("summary", "etrace.cli.etrace.summary", "show a build on one page"),
    Command("report", "etrace.cli.etrace.report", "write a page that shows a build"),
    Command(
        "critical-path",
        "etrace.cli.etrace.critical_path",
        "show what the end of a build waited for, and what could shorten it",
    ),
    Command("timeline", "etrace.cli.etrace.timeline", "write a build for trace viewers"),
    Command("serve", "etrace.cli.serve", "serve the queries of cas as JSON, and a page for them"),
    Command("xray", "etrace.cli.xray", "read XRay logs: where programs spend their time"),
    Command(
        "doctor",
        "etrace.cli.etrace.doctor",
        "check which backends work here, and what to do if none does",
    ),
    Command("completion", "etrace.cli.etrace.completion", "print a shell completion script"),
)
SUMMARY = "see everything a Linux build did"
EPILOG = """\
a first trace:
  etrace run -- make -j8
  cas parse
  etrace summary
  etrace report
"""


def top_parser() -> argparse.ArgumentParser:
    """Declare `etrace` without a command: its help lists them."""
    import argparse

    from etrace.cli.version import add_version

    width = max(len(c.name) for c in COMMANDS)
    listing = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    parser = argparse.ArgumentParser(
        prog="etrace",
        usage="etrace [--help] [--version] COMMAND ...",
        description=f"S{SUMMARY[1:]}.\n\ncommands:\n{listing}",
        epilog=EPILOG + "\n`etrace COMMAND --help` explains a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(
        parser, "collector_zstd", "gcc_plugin", "preload_narrow", "zstd_command", "analytics",
        "perfetto", "web",
    )  # fmt: skip
    parser.add_argument("command", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


def _refuse(argv: list[str]) -> int:  # noqa: RET503  error() exits
    """Answer a command line whose first word is no command: help, the version, or an error."""
    top = top_parser()
    if not argv:
        top.print_help()
        return 2
    name = top.parse_args(argv[:1]).command
    from etrace.alike import suggestion

    top.error(f"no command {name!r}; {suggestion(name, [c.name for c in COMMANDS])}")


def _arguments(command: Command, module: ModuleType, words: list[str]) -> argparse.Namespace:
    read = getattr(module, "read", None)
    if read is not None and (args := read(words)) is not None:
        return args  # type: ignore[no-any-return]
    from etrace.cli.options.common import Parser

    description = f"{command.summary[0].upper()}{command.summary[1:]}."
    parser = Parser(prog=f"etrace {command.name}", description=description)
    module.declare(parser)
    return parser.parse_args(words)


def etrace(argv: list[str] | None = None) -> int:
    """`etrace COMMAND ...`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        command = _find(words[0]) if words else None
        if command is None:
            return _refuse(words)
        __import__(command.module)  # importlib would cost half a millisecond
        module = sys.modules[command.module]
        return int(module.run(_arguments(command, module, words[1:])))

    return guarded("etrace", run)


def etrace_parser(argv: list[str] | None = None) -> int:
    """`etrace_parser INPUT... OUTPUT`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli import parser

        return parser.main(words)

    return guarded("etrace_parser", run)


def cas(argv: list[str] | None = None) -> int:
    """`cas MODULE ...`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli.cas import program

        return program.main(words)

    return guarded("cas", run)


def etraced(argv: list[str] | None = None) -> int:
    """`etraced [OPTION]...`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli import etraced as program

        return program.main(words)

    return guarded("etraced", run)


def unix_tracer(argv: list[str] | None = None) -> int:
    """`unix-tracer [OPTION]... -- COMMAND`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli import unix_tracer as program

        return program.main(words)

    return guarded("unix-tracer", run)
