# SPDX-License-Identifier: Apache-2.0
"""`etrace_parser`: event lines into a database of executions."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from etrace.cli.ending import guarded, say, stop_on_sigterm
from etrace.cli.options.common import (
    Parser,
    add_examples,
    add_jobs,
    add_quiet,
    add_unpacking,
    add_version,
    positive,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from etrace.parse import ParseReport

PROGRAM = "etrace_parser"
EXIT_CLEAN = 0
EXIT_SALVAGED = 2
PROGRESS_AFTER_S = 1.0
MEGA = 1e6

EPILOG = """\
The output appears whole or not at all. docs/nfsdb-json.md describes its keys.

exit status: 0 every line was used; 2 parts of the trace were left out, as standard error reports,
nothing was usable, the input cannot be read, the output cannot be written, or wrong usage.
"""


def make_parser() -> argparse.ArgumentParser:
    """Declare the command line."""
    parser = Parser(
        prog=PROGRAM,
        description="Parse a trace into the image X.img, and write it as JSON too: OUTPUT "
        "(X.json), X.env.json and X.mounts.json.",
        epilog=EPILOG,
    )
    add_jobs(parser)
    parser.add_argument("--stats", action="store_true", help="print counts")
    parser.add_argument("--split", type=positive, default=0, metavar="BYTES",
                        help="split entries whose paths have more than BYTES bytes")  # fmt: skip
    add_unpacking(parser)
    add_version(parser, "zstd command")
    add_quiet(parser)
    parser.add_argument("inputs", nargs="+", metavar="INPUT",
                        help="trace (.nfsdb, .nfsdb.zst), directory of the parts of each CPU, or - "
                             "for standard input; several are merged by time")  # fmt: skip
    parser.add_argument("output", metavar="OUTPUT", help="database to write (.nfsdb.json)")
    add_examples(parser, "etrace_parser .nfsdb .nfsdb.json", "etrace_parser --stats .nfsdb x.json")
    return parser


def show_progress(started: float) -> Callable[[int, int], None]:
    """Return a progress reporter for a terminal; work that ends within a second shows none."""

    def show(done: int, total: int) -> None:
        if time.monotonic() - started >= PROGRESS_AFTER_S and total:
            text = f"{done / MEGA:.0f} of {total / MEGA:.0f} MB ({done * 100 // total}%)"
            print(f"\r{PROGRAM}: {text}\x1b[K", end="", file=sys.stderr, flush=True)

    return show


def hide_progress() -> None:
    """Clear the line on the terminal that shows progress."""
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_stats(report: ParseReport) -> None:
    """Print the counts, one a line."""
    rate = report.size_bytes / MEGA / report.seconds if report.seconds else 0.0
    rows = [
        ("bytes", report.size_bytes),
        ("lines", report.lines),
        *((tag, count) for tag, count in report.events.items() if count),
        ("processes", report.processes),
        ("executions", report.executions),
        ("files", report.files),
        ("distinct paths", report.paths),
        ("pipe links", report.pipe_links),
        ("problems", sum(problem.n_times for problem in report.problems)),
    ]
    for name, number in rows:
        print(f"{name:15} {number:>12}")
    print(f"{'seconds':15} {report.seconds:>12.3f}")
    print(f"{'MB/s':15} {rate:>12.1f}")


def print_problems(report: ParseReport) -> None:
    """Print one line for each kind of problem."""
    for problem in report.problems:
        say(f"{PROGRAM}: {problem}\n")


def run(args: argparse.Namespace) -> int:
    """Parse, then report."""
    from etrace.parse import parse_trace
    from etrace.parse.driver import NothingUsableError
    from etrace.parse.unpacking import allowing

    shows = sys.stderr.isatty() and not args.quiet
    progress = show_progress(time.monotonic()) if shows else None
    try:
        with allowing(args.max_unpacked):
            report = parse_trace(args.inputs, args.output, jobs=args.jobs, split=args.split,
                                 progress=progress)  # fmt: skip
    except NothingUsableError as error:
        if not args.quiet:
            print_problems(error.report)
        raise
    finally:
        if shows:
            hide_progress()
    if args.stats:
        print_stats(report)
    if not args.quiet:
        print_problems(report)
    return EXIT_CLEAN if report.is_clean else EXIT_SALVAGED


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = make_parser().parse_args(argv)
    stop_on_sigterm()
    return guarded(PROGRAM, lambda: run(args))
