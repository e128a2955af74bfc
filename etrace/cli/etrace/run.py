# SPDX-License-Identifier: Apache-2.0
"""`etrace run -- make -j8`: trace a command and everything it starts.

Every build begins with this module, so slow imports happen where they are used.
"""

from __future__ import annotations

import os

from etrace.capture import files, registry
from etrace.capture.options import Options
from etrace.cli.ending import say
from etrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from etrace.capture.backend import Backend, Outcome, Progress

EPILOG = """\
The trace is DIR/.nfsdb, and DIR/.nfsdb.stats has the counts of the capture; with --hash the hashes
are DIR/.nfsdb.hashes. Only you can read
them. When the command starts, an older trace is renamed to .nfsdb.old.

exit status: that of the command, or 128+N when signal N ended it; 125 when the capture failed;
126 and 127 when the command cannot be started. A report that cannot be written is 125 when the
command succeeded.
"""
#: options without a value: (name, help)
FLAGS = (
    ("--env", "record the environment of every program, not only make's without its secrets"),
    ("--mounts", "record mount and umount"),
    ("--thread-names", "record thread names (Comm)"),
    ("--wait-all", "wait for processes that outlive the command, however long"),
    ("--no-usage", "do not record CPU time, memory and I/O of processes (Usage lines)"),
    ("--stdout", "keep what each program writes to standard output, too"),
    ("--no-stderr", "do not keep what each program writes to standard error"),
    ("--hash", "hash the files that the build reads and writes (SHA-256, git blob id)"),
    ("--no-response-files", "do not save the contents of compilers' response files (@FILE)"),
    ("--quiet", "print no status line and no summary"),
)
INTERRUPTED = "the build was interrupted; the trace ends there"
SHORT = {"-q": "--quiet", "-o": "--output"}
VALUED = ("--output", "--backend")
#: the page of --report without a name
REPORT = "build.html"


def _attribute(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace run`."""
    import argparse

    from etrace.cli.options.common import add_examples, add_output, positive

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
    parser.add_argument(
        "--buffer-size", type=positive, metavar="KIB", default=0,
        help="size of the buffer in the kernel: of bpf (default: 32768), or of each CPU (kmod)",
    )  # fmt: skip
    parser.add_argument(
        "--report", metavar="FILE", nargs="?", const=REPORT,
        help="make the database afterwards, and the page of etrace report "
        f"(--report=FILE names it; default: {REPORT})",
    )  # fmt: skip
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    add_examples(
        parser, "etrace run --report -- make -j8", "etrace run --env -o traces -- ninja -C build"
    )


class Arguments:
    """The arguments of a plain command line, as argparse would return them."""

    def __init__(self) -> None:
        self.output = "."
        self.backend = registry.AUTO
        self.buffer_size = 0
        self.command: list[str] = []
        self.report: str | None = None
        for name, _ in FLAGS:
            setattr(self, _attribute(name), False)


def read(words: list[str]) -> Arguments | None:
    """Read options that are written out whole; None for any others: argparse takes 10 ms.

    `--report` gets its value here, because argparse would take the command for it.
    """
    args, at = Arguments(), 0
    flags = [name for name, _ in FLAGS]
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name = SHORT.get(words[at], words[at])
        value: str | bool = True
        if name == "--report":
            words[at] = name = f"--report={REPORT}"
        if name.startswith("--report="):
            name, _, value = name.partition("=")
        elif name in VALUED:
            at += 1
            value = words[at] if at < len(words) else "-"
        elif name not in flags:
            return None
        if isinstance(value, str) and (value[:1] in ("", "-") or files.TRACE in value):
            return None
        setattr(args, _attribute(name), value)
        at += 1
    args.command = words[at:]
    return args if args.backend in registry.names() else None


def status_fields(progress: Progress, elapsed: float) -> tuple[str, ...]:
    """Fields of the live status line, the most important first."""
    from etrace.figures import count, size

    return (
        f"etrace  {int(elapsed) // 60}:{int(elapsed) % 60:02d}",
        f"{count(progress.processes, 'process')} ({progress.live} live)",
        count(progress.executions, "command"),
        count(progress.opens, "open"),
        size(progress.n_bytes),
    )


def _wants_row(quiet: bool) -> bool:
    if quiet or not os.isatty(2):
        return False
    from etrace.cli import terminal

    return terminal.wanted()


def _capture(
    backend: Backend, command: list[str], options: Options, quiet: bool, *, is_last: bool
) -> Outcome:
    if not _wants_row(quiet):
        if is_last:
            backend.become(command, options)
        return backend.run(command, options, None)
    from etrace.cli import terminal

    with terminal.StatusLine() as line:
        return backend.run(command, options, lambda p: line.show(status_fields(p, line.elapsed)))


def _capture_hashing(
    backend: Backend, command: list[str], options: Options, quiet: bool
) -> Outcome:
    """Capture, and let a process beside it hash files."""
    from etrace.capture.hashing import Helper

    helper = Helper(options)
    try:
        return _capture(backend, command, options, quiet, is_last=False)
    finally:
        helper.end()


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
    owner = files.owner_of(os.fspath(args.output))
    trace, folder = files.prepare(os.fspath(args.output), owner)
    return Options(
        trace,
        f"{trace}.stats",
        args.env,
        args.mounts,
        args.thread_names,
        args.wait_all,
        summary=not args.quiet and args.report is None,
        folder=folder,
        marks=files.open_marks(owner),
        owner=owner,
        response_files=not args.no_response_files,
        usage=not args.no_usage,
        stderr=not args.no_stderr,
        stdout=args.stdout,
        substitute=args.backend == registry.AUTO,
        buffer_kib=args.buffer_size,
        hash=args.hash,
    )


def report(stats: dict[str, Any], trace: str | os.PathLike[str], *, is_last: bool = True) -> None:
    """Print the counts of a capture and the next command; nothing when they are unknown."""
    from etrace.figures import NS_PER_SECOND, count, size

    if not stats.get("executions") or "duration_ns" not in stats:
        return
    shown = os.path.relpath(trace)
    seconds = stats["duration_ns"] / NS_PER_SECOND
    if stats.get("ended") == "interrupted":
        say(f"etrace: {INTERRUPTED}\n")
    say(
        f"etrace: {count(stats['processes'], 'process')}, {count(stats['executions'], 'command')}"
        f" and {count(stats['opens'], 'open')} in {seconds:.1f} s -> {shown}"
        f" ({size(stats['bytes'])}){', incomplete' if stats.get('untraced') else ''}\n"
    )
    if is_last:
        has_failed = bool(stats.get("exit_status") or stats.get("signal"))
        say(f"etrace: next: {next_command(trace, has_failed=has_failed)}\n")


def next_command(trace: str | os.PathLike[str], *, has_failed: bool = False) -> str:
    """Return the command that shows a build, for its trace; of one that failed, why it did."""
    folder = os.path.dirname(os.path.relpath(trace))  # noqa: PTH120
    return f"etrace {'summary' if has_failed else 'report'} {folder}".rstrip()


def _check_page(page: str) -> None:
    """Refuse a page that cannot be written, before the build begins. UsageError."""
    folder = os.path.dirname(page) or "."  # noqa: PTH120
    if page and not os.path.isdir(page) and os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112
        return
    what = "a directory" if os.path.isdir(page) else f"{folder} is not a writable directory"  # noqa: PTH112
    raise UsageError(f"--report={page}: {what if page else 'no file'}", "name a file: build.html")


def write_page(page: str, trace: str, *, is_quiet: bool) -> int:
    """Make the database of a trace and its page; an error is printed. Return 0, else 125."""
    from pathlib import Path

    from etrace.cli.ending import fail
    from etrace.cli.etrace.views import write_report
    from etrace.cli.opening import prepared
    from etrace.errors import CaptureError, EtraceError

    try:
        write_report(prepared(Path(trace).parent, is_quiet=is_quiet), Path(page), is_quiet=is_quiet)
    except EtraceError as error:
        fail("etrace", error)
    except OSError as error:
        fail("etrace", EtraceError(f"{error.filename or page}: {error.strerror}"))
    else:
        return 0
    return CaptureError.status


def run(args: Any) -> int:
    """Run `etrace run`."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("no command to trace", "etrace run -- make -j8")
    if command[0].startswith("-"):
        raise UsageError(
            f"unknown option {command[0]}", "options go before `--`: etrace run --help"
        )
    if args.report is not None:
        _check_page(args.report)
    backend = registry.choose(args.backend, lambda text: say(f"etrace: {text}\n"))
    if args.buffer_size and backend.name not in registry.BUFFERED:
        raise UsageError(
            f"--buffer-size: {backend.name} has no buffer in the kernel",
            f"--backend {' or '.join(registry.BUFFERED)}",
        )
    if args.stdout and backend.name not in registry.KEEP_WRITTEN:
        say(f"etrace: {backend.name} does not record what programs write: --stdout does nothing\n")
    options = _options(args)
    page = args.report
    if args.hash:
        outcome = _capture_hashing(backend, command, options, args.quiet)
    else:
        outcome = _capture(backend, command, options, args.quiet, is_last=page is None)
    for remark in outcome.remarks:
        say(f"etrace: {remark}\n")
    if not args.quiet and not outcome.is_reported:
        report(outcome.stats, options.trace, is_last=page is None)
    failed = 0
    if page is not None and os.path.exists(options.trace) and outcome.stats:  # noqa: PTH110
        failed = write_page(page, os.fspath(options.trace), is_quiet=args.quiet)
    return end_like(outcome) or failed
