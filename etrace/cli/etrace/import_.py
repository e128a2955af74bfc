# SPDX-License-Identifier: Apache-2.0
"""`etrace import FORMAT FILE...`: the log of another tool becomes a trace."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.ending import stop_on_sigterm, tell
from etrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etrace.imports.strace.convert import Converted

STRACE = "strace"
FORMATS = (STRACE,)
STDIN = "-"
EPILOG = """\
The log is converted to event lines, from which `cas parse` makes the database. What the log does
not tell is named on standard error and left out. The trace appears whole or not at all; an older
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
    parser.add_argument(
        "-o", "--output", metavar="PATH", type=Path, default=Path(),
        help="trace to write, or a directory for .nfsdb (default: here)",
    )  # fmt: skip
    parser.add_argument("--quiet", "-q", action="store_true", help="print no remarks and counts")
    group = parser.add_argument_group("for strace")
    group.add_argument(
        "--cwd", metavar="DIR", type=Path,
        help="directory in which strace was started (default: as -y shows it)",
    )  # fmt: skip
    group.add_argument(
        "--here", action="store_true",
        help="look up links and #! lines in the files of this machine; the log must be of it",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run `etrace import`."""
    stop_on_sigterm()
    if args.files.count(STDIN) and len(args.files) > 1:
        raise UsageError("- stands alone: one log comes through standard input", "give one log")
    _import_strace(args)
    return 0


def _import_strace(args: argparse.Namespace) -> None:
    from etrace.imports.output import name_trace, put_aside, writing
    from etrace.imports.strace.log import import_log
    from etrace.imports.strace.sources import find

    trace = name_trace(args.output)
    models = [Path(name) for name in find(args.files) if name != STDIN]
    directory = None if args.cwd is None else os.fsencode(args.cwd.absolute())
    with writing(trace, models) as stream:
        converted = import_log(args.files, stream, directory=directory, is_here=args.here)
        was_there = put_aside(trace, _side_suffixes())
    if not args.quiet:
        _report(converted, trace, was_there)


def _side_suffixes() -> Sequence[str]:
    from etrace.capture.session import SIDE_SUFFIXES

    return SIDE_SUFFIXES


def _report(converted: Converted, trace: Path, was_there: bool) -> None:
    from etrace.capture.session import told_aside
    from etrace.cli.show.figures import count, size

    shown = os.path.relpath(trace)
    for remark in converted.remarks:
        tell(f"etrace: {remark}\n")
    if was_there:
        tell(f"etrace: {told_aside(shown)}\n")
    counts = converted.counts
    tell(
        f"etrace: {count(converted.n_processes, 'process')}, "
        f"{count(counts.get('New_proc', 0), 'program')} and {count(counts.get('Open', 0), 'open')}"
        f" -> {shown} ({size(converted.n_bytes)})\n"
        f"etrace: next: cas parse {shown}\n"
    )
