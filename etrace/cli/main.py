# SPDX-License-Identifier: Apache-2.0
"""Entry points. A command's module is imported only when that command runs: `--help` is instant.

What `etrace run` needs is imported before a build begins: no argparse, no dataclasses, no pathlib.
"""

from __future__ import annotations

import sys

from etrace.cli import early

early.settle()

from etrace.cli.ending import guarded, stop_on_sigterm  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


class Command:
    """One `etrace NAME`; its module has `declare_NAME(parser)` and `run_NAME(args) -> int`.

    They need no _NAME when the module has one command. A module may have `read(words)`, which
    returns the same as argparse, or None to use argparse.
    """

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary

    def declare(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        self.load("declare")(parser)

    def run(self, args: Any) -> int:
        """Run the command; return its exit status."""
        return int(self.load("run")(args))

    def load(self, what: str) -> Any:
        """Import the module; return its function `what`, or None."""
        __import__(self.module)  # importlib would cost half a millisecond
        module, own = sys.modules[self.module], self.name.replace("-", "_")
        return getattr(module, f"{what}_{own}", None) or getattr(module, what, None)


COMMANDS = (
    Command("run", "etrace.cli.etrace.run", "trace a command and everything it starts"),
    Command("start", "etrace.cli.etrace.session", "start tracing with the kernel module (root)"),
    Command("status", "etrace.cli.etrace.session", "show the session and what it lost"),
    Command("stop", "etrace.cli.etrace.session", "end the session and write its trace (root)"),
    Command("import", "etrace.cli.etrace.import_", "make a trace from another tool's log"),
    Command("top", "etrace.cli.top", "watch a build that is being traced"),
    Command("summary", "etrace.cli.etrace.views", "show a build on one page"),
    Command("report", "etrace.cli.etrace.views", "write a page that shows a build"),
    Command(
        "critical-path",
        "etrace.cli.etrace.critical_path",
        "show what the end of a build waited for, and what could shorten it",
    ),
    Command(
        "advise", "etrace.cli.etrace.advise", "find what would make a build faster or more robust"
    ),
    Command("check", "etrace.cli.etrace.check", "find what the makefiles of a build lack"),
    Command("timeline", "etrace.cli.etrace.views", "write a build for trace viewers"),
    Command("compare", "etrace.cli.etrace.compare", "show what differs between two builds"),
    Command("why-rebuilt", "etrace.cli.etrace.why_rebuilt", "show why a build made files again"),
    Command(
        "attest",
        "etrace.cli.etrace.attest",
        "write digests over a trace and its documents, or check them",
    ),
    Command("serve", "etrace.cli.serve", "serve the queries of cas as JSON, and a page for them"),
    Command("fleet", "etrace.cli.fleet", "collect many builds, and ask about all of them"),
    Command("xray", "etrace.cli.xray", "read XRay logs: where programs spend their time"),
    Command(
        "doctor",
        "etrace.cli.etrace.setup",
        "check which backends work here, and what to do if none does",
    ),
    Command("completion", "etrace.cli.etrace.setup", "print a shell completion script"),
)
SUMMARY = "see everything a Linux build did"
EPILOG = """\
a first trace, and what it shows:
  etrace run --report -- make -j8
  etrace summary
"""

#: these hand signals on to a build, end a session by them, or leave them to a server
OWN_SIGNALS = ("run", "start", "status", "stop", "top", "serve")


def top_parser() -> argparse.ArgumentParser:
    """Declare `etrace` without a command: its help lists them."""
    import argparse

    from etrace.cli.options.common import add_version

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
        parser, "zstd", "gcc plugin", "preload of 32 bits", "zstd command", "analytics",
        "perfetto", "web",
    )  # fmt: skip
    parser.add_argument("command", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


def _find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


def _refuse(argv: list[str]) -> int:  # noqa: RET503  error() exits
    """Answer a command line whose first word is not a command: help, the version, or an error."""
    top = top_parser()
    if not argv:
        top.print_help()
        return 2
    name = top.parse_args(argv[:1]).command
    top.error(f"no command {name!r}; {_meant(argv)}")


def _meant(argv: list[str]) -> str:
    """Return what the user may have meant: a command of etrace, or to trace a program."""
    import shlex
    import shutil

    from etrace.alike import nearest, suggestion

    names = [command.name for command in COMMANDS]
    if shutil.which(argv[0]) is None:
        return suggestion(argv[0], names)
    near = [*nearest(argv[0], names), f"etrace run -- {shlex.join(argv)}"]
    return f"did you mean: {' or '.join(near)}"


def _arguments(command: Command, words: list[str]) -> Any:
    read = command.load("read")
    if read is not None and (args := read(words)) is not None:
        return args
    from etrace.cli.options.common import Parser

    description = f"{command.summary[0].upper()}{command.summary[1:]}."
    parser = Parser(prog=f"etrace {command.name}", description=description)
    command.declare(parser)
    return parser.parse_args(words)


def etrace(argv: list[str] | None = None) -> int:
    """`etrace COMMAND ...`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        command = _find(words[0]) if words else None
        if command is None:
            return _refuse(words)
        if command.name not in OWN_SIGNALS:
            stop_on_sigterm()  # unfinished files must be removed
        return command.run(_arguments(command, words[1:]))

    return guarded("etrace", run)


def etrace_parser(argv: list[str] | None = None) -> int:
    """`etrace_parser INPUT... OUTPUT`."""
    words = sys.argv[1:] if argv is None else argv

    def run() -> int:
        from etrace.cli import parser

        return parser.main(words)

    return guarded("etrace_parser", run)


def cas(argv: list[str] | None = None) -> int:
    """`cas QUERY ...`."""
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


#: the commands: native/launcher/etrace_start.in calls them
PROGRAMS = {
    "cas": cas,
    "etrace": etrace,
    "etrace_parser": etrace_parser,
    "etraced": etraced,
    "unix-tracer": unix_tracer,
}
