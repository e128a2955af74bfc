# SPDX-License-Identifier: Apache-2.0
"""`cas parse` and `cas cache`: make a database from a trace, and make it again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.ending import say
from etrace.cli.options.common import (
    add_database,
    add_examples,
    add_jobs,
    add_output,
    add_quiet,
    add_unpacking,
)
from etrace.errors import UsageError
from etrace.figures import count

if TYPE_CHECKING:
    from etrace.parse.database import Parsed
    from etrace.parse.report import ParseReport

# ---- parse ----


EXIT_SALVAGED = 2


def declare_parse(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas parse`."""
    add_database(parser)
    add_output(
        parser, None,
        "directory of the database, which is made if need be (default: that of the trace)",
    )  # fmt: skip
    parser.add_argument(
        "traces", metavar="TRACE", nargs="*", type=Path,
        help="trace (.nfsdb, .nfsdb.zst), directory of the parts of each CPU, or - for standard "
             "input; several are merged by time (default: the one in the database's directory)",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="make the database again even if it is up to date"
    )
    parser.add_argument("--with-json", action="store_true", help="also write .nfsdb.json")
    parser.add_argument(
        "--hash", action="store_true",
        help="hash all files that the capture has not, as they are now (SHA-256, git blob id)",
    )  # fmt: skip
    add_jobs(parser)
    add_unpacking(parser)
    parser.add_argument(
        "--set-root", metavar="DIR", help="where the build began (default: as traced)"
    )
    parser.add_argument(
        "--set-version",
        metavar="TEXT",
        help="your name for this database, which `cas info versions` prints",
    )
    add_quiet(parser)
    add_examples(parser, "cas parse", "cas parse build.nfsdb.zst -o database")


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
        f"{shown}: {count(report.processes, 'process')}, {count(report.executions, 'command')},"
        f" {count(report.files, 'opened file')} in {report.seconds:.1f} s"
    )


def report_problems(problems: Sequence[str]) -> None:
    """Report the problems of a trace."""
    for problem in problems:
        say(f"cas parse: {problem}\n")


def parse(args: argparse.Namespace) -> Parsed:
    """Make the database, with progress on a terminal."""
    from etrace.cli.opening import find
    from etrace.cli.parser import hide_progress, show_progress
    from etrace.imports.files import making
    from etrace.nfsdb.files import locate
    from etrace.parse.database import find_trace, name_database, parse_database
    from etrace.parse.unpacking import allowing

    if args.output is not None and args.traces and args.database is not None:
        raise UsageError("two directories are given", "leave out -o or --db")
    directory: Path | None = args.output or args.database
    traces = args.traces
    if not traces:
        there = locate(find(args)).trace.parent
        traces, directory = [find_trace(there)], directory or there
    shows = sys.stderr.isatty() and not args.quiet
    progress = show_progress(time.monotonic()) if shows else None
    try:
        with making(args.output or Path()), allowing(args.max_unpacked):
            return parse_database(
                traces, name_database(traces, directory),
                force=args.force, with_json=args.with_json, with_hashes=args.hash, jobs=args.jobs,
                said=add_said(args), progress=progress,
            )  # fmt: skip
    finally:
        if shows:
            hide_progress()


def run_parse(args: argparse.Namespace) -> int:
    """Run `cas parse`; 0 clean, 2 when parts of the trace were left out."""
    from etrace.parse.driver import NothingUsableError

    try:
        parsed = parse(args)
    except NothingUsableError as error:
        report_problems([str(problem) for problem in error.report.problems])
        raise
    if not args.quiet:
        print(line(parsed.report, parsed.files.image))
        report_problems(parsed.problems)
    return EXIT_SALVAGED if parsed.problems else 0


# ---- cache ----


def declare_cache(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas cache`."""
    add_database(parser)
    parser.add_argument(
        "--force", action="store_true", help="make the database again even if it is up to date"
    )
    parser.add_argument(
        "--set-root", metavar="DIR", help="where the build began (default: as traced)"
    )
    parser.add_argument(
        "--set-version",
        metavar="TEXT",
        help="your name for this database, which `cas info versions` prints",
    )
    add_quiet(parser)
    add_examples(parser, "cas cache", "cas cache --set-version 1.2")


def update(args: argparse.Namespace) -> str:
    """Bring the image up to date; returns the line about it."""
    from etrace.cli.opening import find
    from etrace.nfsdb.files import locate
    from etrace.nfsdb.store import update_image

    args.database = find(args)
    files = locate(args.database)
    made = update_image(files, add_said(args), force=args.force)
    return f"{os.path.relpath(files.image)}: {'made' if made else 'unchanged'}"


def add_graph(args: argparse.Namespace) -> str:
    """Make the dependency graph when the image lacks it; return the line to print."""
    from libetrace.depend.configuration import load

    from etrace.nfsdb.store import open_database
    from etrace.postprocess.run import Result, postprocess

    image = open_database(args.database)
    results: list[Result] = []
    postprocess(image, load(image.path.parent), ("graph",), force=args.force, report=results.append)
    return f"graph: {results[0].text or 'unchanged'}"


def run_cache(args: argparse.Namespace) -> int:
    """Run `cas cache`."""
    for step in (update, add_graph):
        text = step(args)
        if not args.quiet:
            print(text)
    return 0
