# SPDX-License-Identifier: Apache-2.0
"""`cas parse`: make a database from a trace."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.ending import tell
from etrace.cli.options.common import add_database, add_unpacking, positive
from etrace.cli.show.figures import count

if TYPE_CHECKING:
    from etrace.parse.database import Parsed
    from etrace.parse.report import ParseReport

EXIT_SALVAGED = 2


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas parse`."""
    add_database(parser)
    parser.add_argument(
        "traces", metavar="TRACE", nargs="*", type=Path,
        help="trace (.nfsdb, .nfsdb.zst), directory of the parts of each CPU, or - for standard "
             "input; several are merged by time (default: the one in the database's directory)",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="make the database again even if it is up to date"
    )
    parser.add_argument("--json", action="store_true", help="also write .nfsdb.json")
    parser.add_argument("-j", "--jobs", type=positive, default=0, metavar="N",
                        help="threads (default: one for each CPU)")  # fmt: skip
    add_unpacking(parser)
    parser.add_argument(
        "--set-root", metavar="DIR", help="where the build began (default: as traced)"
    )
    parser.add_argument(
        "--set-version", metavar="TEXT", help="the version that `cas version` prints"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def add_said(args: argparse.Namespace) -> dict[str, str]:
    """Return the facts about the database that the user gave."""
    said = {"source_root": args.set_root, "version": args.set_version}
    return {name: text for name, text in said.items() if text is not None}


def line(report: ParseReport | None, image: Path) -> str:
    """Return the line about a database that was made or was up to date."""
    shown = os.path.relpath(image)
    if report is None:
        return f"{shown}: unchanged, made from this trace"
    return (
        f"{shown}: {count(report.processes, 'process')}, {count(report.executions, 'program')},"
        f" {count(report.files, 'opened file')} in {report.seconds:.1f} s"
    )


def tell_problems(problems: Sequence[str]) -> None:
    """Report the problems of a trace."""
    for problem in problems:
        tell(f"cas parse: {problem}\n")


def parse(args: argparse.Namespace) -> Parsed:
    """Make the database, with progress on a terminal."""
    from etrace.cli.parser import hide_progress, show_progress
    from etrace.nfsdb.files import locate
    from etrace.parse.database import find_trace, name_database, parse_database
    from etrace.parse.unpacking import allowing

    directory: Path | None = args.database
    traces = args.traces
    if not traces:
        directory = locate(args.database).trace.parent
        traces = [find_trace(directory)]
    shows = sys.stderr.isatty() and not args.quiet
    progress = show_progress(time.monotonic()) if shows else None
    try:
        with allowing(args.max_unpacked):
            return parse_database(
                traces, name_database(traces, directory),
                force=args.force, with_json=args.json, jobs=args.jobs, said=add_said(args),
                progress=progress,
            )  # fmt: skip
    finally:
        if shows:
            hide_progress()


def run(args: argparse.Namespace) -> int:
    """Run `cas parse`; 0 clean, 2 when parts of the trace were left out."""
    from etrace.parse.driver import NothingUsableError

    try:
        parsed = parse(args)
    except NothingUsableError as error:
        tell_problems([str(problem) for problem in error.report.problems])
        raise
    if not args.quiet:
        print(line(parsed.report, parsed.files.image))
        tell_problems(parsed.problems)
    return EXIT_SALVAGED if parsed.problems else 0
