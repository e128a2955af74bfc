# SPDX-License-Identifier: Apache-2.0
"""`unix-tracer -- make`: trace a build and write its build spec, with xcalbuild's options.

The build is captured as `etrace run` captures it, into a directory that is removed afterwards; the
spec is what `cas export build-spec` makes of it (docs/exports.md).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from etrace.cli.ending import fail, name_of, say, stop_on_sigterm
from etrace.cli.options import build_spec as spec_options
from etrace.cli.options.common import Parser, add_version
from etrace.errors import CaptureError, EtraceError

if TYPE_CHECKING:
    from etrace.capture.backend import Backend, Outcome

PROGRAM = "unix-tracer"
SUMMARY = "trace a build and write its build spec"
USAGE = f"{PROGRAM} [-o output] [-l libpaths] [-s socket] [-d] [-c clist] [-p] [-h] -- command"
OUTPUT = Path("compile_commands.json")
#: that of xcalbuild's tracer, for a wrong command line and for -h
EXIT_USAGE = 1
#: exit status when the build succeeded, and its spec could not be made
TRACER_FAILED = 125
#: the backend that misses nothing, and the one for where it cannot work
PREFERRED, SUBSTITUTE = "ptrace", "preload"
#: the preload library of any machine
LIBRARY = "libetrace-*.so"
EPILOG = """\
The output appears when the build has ended, whole or not at all. docs/exports.md describes it.

exit status: that of the command, or 128+N when signal N ended it; 1 for -h and for a wrong command
line; 125 when the capture failed; 126 and 127 when the command cannot be started.
"""


class UsageAction(argparse.Action):
    """`-h` and `-?`: the usage on standard error, and status 1."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print; SystemExit."""
        parser.print_help(sys.stderr)
        parser.exit(EXIT_USAGE)


class _Parser(Parser):
    """A parser with xcalbuild's exit status."""

    def error(self, message: str) -> NoReturn:
        """End with the usage and a message."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{PROGRAM}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """Declare the command line."""
    from etrace.capture import registry

    parser = _Parser(
        prog=PROGRAM,
        usage=USAGE,
        description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-o", dest="output", metavar="FILE", type=Path, default=OUTPUT,
        help="output file (default: %(default)s)")  # fmt: skip
    add("-l", dest="libraries", metavar="PATHS",
        help="directories of the preload library, between colons; ptrace needs none")  # fmt: skip
    add("-s", dest="socket", metavar="SOCKET",
        help="accepted and not used: no backend needs a socket")  # fmt: skip
    spec_options.add_form(parser, "-d", "-c")
    add("-p", dest="prints_known", action="store_true", help="print the known programs, and exit")
    add("-h", "-?", action=UsageAction, nargs=0, help="print this on standard error, and exit")
    add("--help", action="help", help="print this, and exit")
    add(
        "--backend",
        choices=[each.name for each in registry.BACKENDS],
        help="how to capture (default: ptrace, or preload where that does not work)",
    )
    add("--no-wait", action="store_true",
        help="wait at most a second for processes that outlive the command")  # fmt: skip
    add_version(parser)
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main(words: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parser = make_parser()
    args = parser.parse_args(words)
    if args.prints_known:
        print("Known compilers:", *(f"  {name}" for name in spec_options.listed(args)), sep="\n")
        return 0
    args.command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not args.command:
        parser.error("no command to trace")
    stop_on_sigterm()
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Capture the command, write its spec and end as it ended."""
    from etrace.capture.options import Options
    from etrace.capture.orphans import temporary_directory
    from etrace.cli.etrace.run import end_like

    backend = _backend(args)
    libraries = _libraries(args, backend)
    _check_output(args.output)
    with temporary_directory(f"{PROGRAM}-") as (place, ends_with_me):
        trace = Path(place) / ".nfsdb"
        options = Options(
            trace, f"{trace}.stats", wait_all=not args.no_wait, libraries=libraries,
            on_start=ends_with_me,
        )  # fmt: skip
        outcome = backend.run(args.command, options, None)
        for remark in outcome.remarks:
            say(f"{PROGRAM}: {remark}\n")
        failed = _exported(args, trace, outcome)
    return failed if failed and not outcome.status else end_like(outcome)


def _exported(args: argparse.Namespace, trace: Path, outcome: Outcome) -> int:
    """Write the spec of a capture; 125 when that failed, which counts when the build did not."""
    try:
        _export(args, trace, outcome)
    except EtraceError as error:
        fail(PROGRAM, error)
    except OSError as error:
        name = f"{name_of(error)}: " if error.filename else ""
        fail(PROGRAM, EtraceError(f"{name}{error.strerror}", "give another file with -o"))
    else:
        return 0
    return TRACER_FAILED


def _export(args: argparse.Namespace, trace: Path, outcome: Outcome) -> None:
    """Write the spec of a capture; nothing when the command could not be started."""
    from etrace.cli.show.output import writing
    from etrace.export.build_spec import BuildSpec, write
    from etrace.nfsdb.store import open_database
    from etrace.parse.database import name_database, parse_database
    from etrace.parse.driver import NothingUsableError

    if outcome.status and not trace.exists():
        return
    try:
        parsed = parse_database([trace], name_database([trace], None))
    except NothingUsableError:
        if outcome.status:
            return
        raise
    for problem in parsed.problems:
        say(f"{PROGRAM}: {problem}\n")
    image = open_database(trace.parent)
    with writing(args.output, image.path) as stream:
        written = write(stream, BuildSpec(image, spec_options.known(args)), is_debug=args.debug)
    spec_options.report_empty(PROGRAM, written)


def _check_output(output: Path) -> None:
    """Refuse an output that cannot be written, before the build begins. CaptureError."""
    folder = output.absolute().parent
    if output.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        what = "a directory" if output.is_dir() else f"{folder} is not a writable directory"
        raise CaptureError(f"{output}: {what}", "give another file with -o")


def _backend(args: argparse.Namespace) -> Backend:
    """Return the backend to capture with. CaptureError when it cannot work here."""
    from etrace.capture import registry

    if args.backend is not None:
        return registry.choose(args.backend, _report_line)
    backend = next(each for each in registry.BACKENDS if each.name == PREFERRED)
    probe = backend.probe()
    if probe.works:
        return backend
    _report_line(f"{PREFERRED} does not work here: {probe.reason}")
    _report_line(f"capturing with {SUBSTITUTE}, which misses static programs")
    return registry.choose(SUBSTITUTE, _report_line)


def _libraries(args: argparse.Namespace, backend: Backend) -> str | None:
    """Return the directory of `-l` with the preload library, and say what is not used."""
    if args.socket is not None:
        _report_line("-s is not used: etrace needs no socket")
    if args.libraries is None:
        return None
    if backend.name != SUBSTITUTE:
        _report_line(f"-l is not used: {backend.name} needs no library")
        return None
    folders = (Path(each) for each in args.libraries.split(":"))
    found = next((each for each in folders if any(each.glob(LIBRARY))), None)
    if found is None:
        _report_line(f"-l is not used: there is no {LIBRARY}; taking the installed one")
    return None if found is None else str(found.absolute())


def _report_line(text: str) -> None:
    say(f"{PROGRAM}: {text}\n")
