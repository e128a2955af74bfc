# SPDX-License-Identifier: Apache-2.0
"""`etrace import FORMAT FILE...`: the log of another tool becomes a trace."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.ending import say
from etrace.cli.options.common import add_examples, add_output, add_quiet, add_unpacking
from etrace.errors import EtraceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from etrace.imports.event_lines import EventLines

STRACE = "strace"
ACCESSES = "file-access-trace"
FORMATS = (STRACE, ACCESSES)
STDIN = "-"
EPILOG = """\
The log is converted to event lines, from which `cas parse` makes the database. What the log
lacks is left out and named on standard error. The trace appears whole or not at all; an older
one is renamed to .nfsdb.old.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace import`."""
    parser.epilog = EPILOG
    parser.add_argument("format", choices=FORMATS, help="what wrote the log")
    parser.add_argument(
        "files", metavar="FILE", nargs="+",
        help="the log, or - for standard input; of strace -ff its prefix, or all its files",
    )  # fmt: skip
    add_output(parser)
    add_quiet(parser)
    add_unpacking(parser)
    group = parser.add_argument_group("for strace")
    group.add_argument(
        "--cwd", metavar="DIR", type=Path,
        help="directory in which strace was started (default: as -y shows it)",
    )  # fmt: skip
    group.add_argument(
        "--here", action="store_true",
        help="look up links and #! lines in the files of this machine, where the log must be from",
    )  # fmt: skip
    add_examples(
        parser,
        "etrace import strace build.log",
        "etrace import file-access-trace build.txt -o imported",
    )


def run(args: argparse.Namespace) -> int:
    """Run `etrace import`."""
    if args.format != STRACE and (args.cwd is not None or args.here):
        raise UsageError("--cwd and --here are for strace", "leave them out")
    if args.files.count(STDIN) and len(args.files) > 1:
        raise UsageError("- is standard input, which holds one log", "name no other log")
    if args.format != STRACE and len(args.files) > 1:
        raise UsageError("one file access trace makes one trace", "import them one by one, with -o")
    from etrace.imports.files import making

    with making(args.output):
        if args.format == STRACE:
            _import_strace(args)
        else:
            _import_accesses(args, args.files[0])
    return 0


def _import_strace(args: argparse.Namespace) -> None:
    from etrace.imports.files import name_trace, put_aside, writing
    from etrace.imports.strace.log import import_log
    from etrace.imports.strace.sources import find
    from etrace.parse import unpacking

    trace = name_trace(args.output)
    models = [Path(name) for name in find(args.files) if name != STDIN]
    directory = None if args.cwd is None else os.fsencode(args.cwd.absolute())
    with unpacking.allowing(args.max_unpacked), writing(trace, models) as stream:
        converted = import_log(
            args.files, stream, directory=directory, is_here=args.here, most=unpacking.most_written
        )
        was_there = put_aside(trace, _side_suffixes())
    if not args.quiet:
        _report(converted.out, converted.n_processes, converted.remarks, trace, was_there)


def _import_accesses(args: argparse.Namespace, name: str) -> None:
    from etrace.figures import agree
    from etrace.imports.access_trace import reader, side
    from etrace.imports.access_trace.events import Events
    from etrace.imports.files import name_trace, put_aside, writing

    trace = name_trace(args.output)
    models = [Path(name)] if name != STDIN else []
    with _opened(name, args.max_unpacked) as source:
        accesses = reader.read("standard input" if name == STDIN else name, source)
    with writing(trace, models) as stream, writing(side.path_of(trace), models) as kept:
        events = Events(accesses, stream)
        events.write()
        stream.flush()
        side.write(accesses, kept, stream.fileno())
        was_there = put_aside(trace, _side_suffixes())
    if not args.quiet:
        left_out = [agree(n, text) for text, n in events.left_out.items()]
        remarks = [f"no events, but kept for an export: {', '.join(left_out)}"] if left_out else []
        _report(events.out, len(accesses.processes), remarks, trace, was_there)


@contextlib.contextmanager
def _opened(name: str, limit: int | None) -> Iterator[BinaryIO]:
    """Open a file, unpacked by its suffix to at most `limit` bytes. EtraceError."""
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as stream:
            if not name.endswith((".gz", ".zst")):
                yield stream
                return
            from etrace.parse import unpacking

            packed = stream.read()
    except OSError as error:
        hint = "name a file access trace that you can read"
        raise EtraceError(f"cannot read {name}: {error.strerror}", hint) from error
    unpack = unpacking.gunzip if name.endswith(".gz") else unpacking.unzstd
    with unpacking.allowing(limit):
        text = unpack(packed, name)
    if isinstance(text, unpacking.Salvaged):
        raise EtraceError(f"{name}: damaged {name.rpartition('.')[2]} data", "copy the file again")
    yield io.BytesIO(text)


def _side_suffixes() -> Sequence[str]:
    from etrace.capture.files import SIDE_SUFFIXES

    return SIDE_SUFFIXES


def _report(
    out: EventLines, n_processes: int, remarks: Iterable[str], trace: Path, was_there: bool
) -> None:
    from etrace.capture.files import aside_message
    from etrace.cli.etrace.run import next_command
    from etrace.figures import count, size

    shown = os.path.relpath(trace)
    for remark in remarks:
        say(f"etrace: {remark}\n")
    if was_there:
        say(f"etrace: {aside_message(shown)}\n")
    say(
        f"etrace: {count(n_processes, 'process')}, "
        f"{count(out.counts['New_proc'], 'command')} and {count(out.counts['Open'], 'open')}"
        f" -> {shown} ({size(out.n_bytes)})\n"
        f"etrace: next: {next_command(trace)}\n"
    )
