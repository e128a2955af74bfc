# SPDX-License-Identifier: Apache-2.0
"""`etrace xray account`: how often functions were called and how long they took."""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from etrace.cli.options.common import positive
from etrace.cli.xray import options
from etrace.xray.account import SORT_KEYS, FunctionAccount, Report, account
from etrace.xray.session import Session

CSV_HEAD = (
    "funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum", "debug", "function",
    "self", "process", "thread",
)  # fmt: skip
HEADINGS = ("calls", "self", "sum", "min", "median", "90 %", "99 %", "max")
UNITS = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument(
        "--format", choices=("text", "csv", "json"), default="text", help="(default: %(default)s)"
    )
    parser.add_argument(
        "-s", "--sort", default=None, metavar="KEY", choices=SORT_KEYS,
        help=f"{', '.join(SORT_KEYS)} (default: self, in csv funcid)",
    )  # fmt: skip
    parser.add_argument("--ascending", action="store_true", help="smallest first")
    parser.add_argument("--top", type=positive, metavar="N", help="only the first N")
    parser.add_argument("--by-thread", action="store_true", help="a row for each thread")
    parser.add_argument(
        "-d", "--deduce", action="store_true",
        help="count calls that lost their exit: they end with their caller",
    )  # fmt: skip


def show_ns(ns: int) -> str:
    """Return a time with four digits and a unit."""
    for unit, size in UNITS:
        if ns >= size:
            digits = 3 - min(len(str(ns // size)) - 1, 3)
            return f"{ns / size:.{digits}f} {unit}"
    return f"{ns} ns"


def _figures(row: FunctionAccount, ns: Callable[[int], int]) -> list[str]:
    ticks = (
        row.self_total, row.total, row.minimum, row.median, row.percentile_90, row.percentile_99,
        row.maximum,
    )  # fmt: skip
    return [str(row.count), *(show_ns(ns(value)) for value in ticks)]


def _width(args: argparse.Namespace) -> int | None:
    """Return how long a line may be; None when no terminal shows it."""
    return max(shutil.get_terminal_size().columns, 80) if options.is_shown(args) else None


def _text(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
    figures = [_figures(row, report.clock.ns) for row in report.rows]
    threads = [f"{row.process}/{row.thread} " if by_thread else "" for row in report.rows]
    widths = [
        max([len(heading), *(len(line[i]) for line in figures)])
        for i, heading in enumerate(HEADINGS)
    ]
    yield "  ".join(f"{h:>{w}}" for h, w in zip(HEADINGS, widths, strict=True)) + "  function\n"
    for row, line, thread in zip(report.rows, figures, threads, strict=True):
        numbers = "  ".join(f"{text:>{w}}" for text, w in zip(line, widths, strict=True))
        place = session.names.place(row.function)
        text = f"{numbers}  {thread}{row.name}{'  ' + place if place else ''}"
        yield text + "\n"


def _csv(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    seconds = report.clock.seconds
    for row in report.rows:
        times = (
            row.minimum, row.median, row.percentile_90, row.percentile_99, row.maximum, row.total,
        )  # fmt: skip
        writer.writerow(
            [
                row.function,
                row.count,
                *(f"{seconds(value):e}" for value in times),
                session.names.place(row.function),
                row.name,
                f"{seconds(row.self_total):e}",
                row.process if by_thread else "",
                row.thread if by_thread else "",
            ]
        )
    yield text.getvalue()


def _json_row(row: FunctionAccount, session: Session, by_thread: bool) -> dict[str, Any]:
    ns = session.clock.ns
    out = {
        "function_id": row.function, "function": row.name,
        "place": session.names.place(row.function),
        "count": row.count, "min_ns": ns(row.minimum), "median_ns": ns(row.median),
        "p90_ns": ns(row.percentile_90), "p99_ns": ns(row.percentile_99),
        "max_ns": ns(row.maximum), "sum_ns": ns(row.total), "self_ns": ns(row.self_total),
    }  # fmt: skip
    return out | ({"process": row.process, "thread": row.thread} if by_thread else {})


def _json(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
    document = {
        "frequency_hz": report.clock.hz, "calls": report.n_calls,
        "unmatched_exits": report.n_unmatched_exits, "deduced": report.n_deduced,
        "unfinished": report.n_unfinished, "backwards": report.n_backwards,
        "functions": [_json_row(row, session, by_thread) for row in report.rows],
    }  # fmt: skip
    yield json.dumps(document, indent=1) + "\n"


WRITERS = {"text": _text, "csv": _csv, "json": _json}


def run(args: argparse.Namespace) -> int:
    """Print the account."""
    session = options.make_session(args)
    sort = args.sort or ("funcid" if args.format == "csv" else "self")
    names = sort in ("funcid", "func", "thread")
    report = account(
        session, by_thread=args.by_thread, deduce=args.deduce, sort=sort,
        descending=not args.ascending and not names, top=args.top,
    )  # fmt: skip
    with options.open_output(args) as stream:
        width = _width(args) if args.format == "text" else None
        for text in WRITERS[args.format](report, session, args.by_thread):
            shown = text if width is None or len(text) <= width else text[:width] + "\n"
            stream.write(shown.encode(errors="replace"))
    return options.finish_account(session, report.native)
