# SPDX-License-Identifier: Apache-2.0
"""`etrace run -- make -j8`: trace a command and everything it starts."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal

from etrace.capture import registry, session
from etrace.capture.backend import Backend, Options, Outcome, Progress
from etrace.cli.captured import report
from etrace.cli.ending import tell
from etrace.cli.figures import count, size
from etrace.cli.options import add_output
from etrace.errors import NoSuchCommandError, UsageError

EPILOG = """\
The exit status is that of the command; 128+N when signal N ended it; 125 when the capture failed,
126 and 127 when the command cannot be started. The trace is DIR/.nfsdb, how the capture went
DIR/.nfsdb.stats. A trace that was there before is kept as .nfsdb.old.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace run`."""
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
    parser.add_argument(
        "--env", action="store_true", help="record the environment of every program"
    )
    parser.add_argument("--mounts", action="store_true", help="record mount and umount")
    parser.add_argument("--thread-names", action="store_true", help="record thread names (Comm)")
    parser.add_argument(
        "--wait-all",
        action="store_true",
        help="wait for processes that outlive the command, however long",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no status line, no summary")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def status_text(progress: Progress, elapsed: float) -> str:
    """Text of the live status line."""
    return (
        f" etrace  {int(elapsed) // 60}:{int(elapsed) % 60:02d}"
        f"  {count(progress.processes, 'process')} ({progress.live} live)"
        f"  {count(progress.executions, 'program')}"
        f"  {count(progress.opens, 'open')}  {size(progress.n_bytes)}"
    )


def _capture(backend: Backend, command: list[str], options: Options, quiet: bool) -> Outcome:
    from etrace.cli import status_line

    if quiet or not status_line.wanted():
        return backend.run(command, options, None)
    with status_line.StatusLine() as line:
        return backend.run(command, options, lambda p: line.show(status_text(p, line.elapsed)))


def _end_like(outcome: Outcome) -> int:
    """End as the command ended: by the same signal, so that a shell sees no difference."""
    if outcome.signal:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has dumped its own core
        if outcome.signal != signal.SIGKILL:
            signal.signal(outcome.signal, signal.SIG_DFL)
        os.kill(os.getpid(), outcome.signal)
    return outcome.status


def run(args: argparse.Namespace) -> int:
    """Run `etrace run`."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("no command to trace", "etrace run -- make -j8")
    if command[0].startswith("-"):
        raise UsageError(
            f"unknown option {command[0]}", "options go before `--`: etrace run --help"
        )
    if shutil.which(command[0], mode=os.F_OK) is None:  # before an older trace is put aside
        where = "" if "/" in command[0] else " in PATH"
        raise NoSuchCommandError(f"cannot run {command[0]!r}: no such command{where}")
    backend = registry.choose(args.backend, lambda text: tell(f"etrace: {text}\n"))
    trace, stats, aside = session.prepare(args.output)
    if aside and not args.quiet:
        tell(f"etrace: the older trace is now {trace.name}{session.OLD_SUFFIX}\n")
    options = Options(trace, stats, args.env, args.mounts, args.thread_names, args.wait_all)
    outcome = _capture(backend, command, options, args.quiet)
    for remark in outcome.remarks:
        tell(f"etrace: {remark}\n")
    if not args.quiet:
        report(outcome.stats, options.trace)
    return _end_like(outcome)
