# SPDX-License-Identifier: Apache-2.0
"""`etrace run -- make -j8`: trace a command and everything it starts.

Every build begins with this module, so slow imports happen where they are used.
"""

from __future__ import annotations

import os

from etrace.capture import registry, session
from etrace.capture.options import Options
from etrace.cli.ending import tell
from etrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from etrace.capture.backend import Backend, Outcome, Progress

EPILOG = """\
The trace is DIR/.nfsdb, and DIR/.nfsdb.stats has the counts of the capture. Only you can read
them. When the command starts, an older trace is renamed to .nfsdb.old.

exit status: that of the command, or 128+N when signal N ended it; 125 when the capture failed;
126 and 127 when the command cannot be started.
"""
#: options without a value: (name, help)
FLAGS = (
    ("--env", "record the environment of every program"),
    ("--mounts", "record mount and umount"),
    ("--thread-names", "record thread names (Comm)"),
    ("--wait-all", "wait for processes that outlive the command, however long"),
    ("--no-usage", "do not record CPU time, memory and I/O of processes (Usage lines)"),
    ("--no-response-files", "do not save the contents of compilers' response files (@FILE)"),
    ("--quiet", "print no status line and no summary"),
)
SHORT = {"-q": "--quiet", "-o": "--output"}
VALUED = ("--output", "--backend")


def _attribute(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace run`."""
    import argparse

    from etrace.cli.options.common import add_output

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.usage = "etrace run [options] -- COMMAND [ARGUMENT...]"
    add_output(parser)
    parser.add_argument(
        "--backend",
        choices=registry.names(),
        default=registry.AUTO,
        help="how to capture (default: %(default)s)",
    )
    for name, text in FLAGS:
        short = [key for key, long in SHORT.items() if long == name]
        parser.add_argument(*short, name, action="store_true", help=text)
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


class Arguments:
    """The arguments of a plain command line, as argparse would return them."""

    def __init__(self) -> None:
        self.output = "."
        self.backend = registry.AUTO
        self.command: list[str] = []
        for name, _ in FLAGS:
            setattr(self, _attribute(name), False)


def read(words: list[str]) -> Arguments | None:
    """Read options that are written out whole; None for any others: argparse takes 10 ms."""
    args, at = Arguments(), 0
    flags = [name for name, _ in FLAGS]
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name = SHORT.get(words[at], words[at])
        value: str | bool = True
        if name in VALUED:
            at += 1
            value = words[at] if at < len(words) else "-"
        elif name not in flags:
            return None
        if isinstance(value, str) and (value[:1] in ("", "-") or session.TRACE in value):
            return None
        setattr(args, _attribute(name), value)
        at += 1
    args.command = words[at:]
    return args if args.backend in registry.names() else None


def status_fields(progress: Progress, elapsed: float) -> tuple[str, ...]:
    """Fields of the live status line, the most important first."""
    from etrace.cli.show.figures import count, size

    return (
        f"etrace  {int(elapsed) // 60}:{int(elapsed) % 60:02d}",
        f"{count(progress.processes, 'process')} ({progress.live} live)",
        count(progress.executions, "program"),
        count(progress.opens, "open"),
        size(progress.n_bytes),
    )


def _wants_row(quiet: bool) -> bool:
    if quiet or not os.isatty(2):
        return False
    from etrace.cli.terminal import status_line

    return status_line.wanted()


def _capture(backend: Backend, command: list[str], options: Options, quiet: bool) -> Outcome:
    if not _wants_row(quiet):
        backend.become(command, options)
        return backend.run(command, options, None)
    from etrace.cli.terminal import status_line

    with status_line.StatusLine() as line:
        return backend.run(command, options, lambda p: line.show(status_fields(p, line.elapsed)))


def end_like(outcome: Outcome) -> int:
    """End as the command ended: by the same signal, so that a shell sees no difference."""
    if outcome.signal:
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has dumped its own core
        if outcome.signal != signal.SIGKILL:
            signal.signal(outcome.signal, signal.SIG_DFL)
        os.kill(os.getpid(), outcome.signal)
    return outcome.status


def _options(args: Any) -> Options:
    owner = session.owner_of(os.fspath(args.output))
    trace, folder = session.prepare(os.fspath(args.output), owner)
    return Options(
        trace,
        f"{trace}.stats",
        args.env,
        args.mounts,
        args.thread_names,
        args.wait_all,
        summary=not args.quiet,
        folder=folder,
        owner=owner,
        response_files=not args.no_response_files,
        usage=not args.no_usage,
        substitute=args.backend == registry.AUTO,
    )


def run(args: Any) -> int:
    """Run `etrace run`."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("no command to trace", "etrace run -- make -j8")
    if command[0].startswith("-"):
        raise UsageError(
            f"unknown option {command[0]}", "options go before `--`: etrace run --help"
        )
    backend = registry.choose(args.backend, lambda text: tell(f"etrace: {text}\n"))
    options = _options(args)
    outcome = _capture(backend, command, options, args.quiet)
    for remark in outcome.remarks:
        tell(f"etrace: {remark}\n")
    if options.summary and not outcome.is_told:
        from etrace.cli.etrace.captured import report

        report(outcome.stats, options.trace)
    return end_like(outcome)
