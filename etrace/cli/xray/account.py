# SPDX-License-Identifier: Apache-2.0
"""`etrace xray account`, `stack` and `flame`: which functions took the time."""

from __future__ import annotations

import argparse
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from etrace.cli.options.common import add_examples, add_format, positive
from etrace.cli.xray import options
from etrace.figures import count
from etrace.texts import CsvWriter
from etrace.xray.account import SORT_KEYS, FunctionAccount, Report, account
from etrace.xray.session import Session
from etrace.xray.stacks import Node, Stacks, Weight, render_flame_graph, stacks, stacks_by_thread

# ---- account ----

CSV_HEAD = (
    "funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum", "debug", "function",
    "self", "process", "thread",
)  # fmt: skip
HEADINGS = ("calls", "self", "sum", "min", "median", "90 %", "99 %", "max")
UNITS = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))


def declare_account(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    add_format(parser, "text", "csv", "json")
    parser.add_argument(
        "--sort", default=None, metavar="KEY", choices=SORT_KEYS,
        help=f"sort by KEY: {', '.join(SORT_KEYS)} (default: self, in csv funcid)",
    )  # fmt: skip
    parser.add_argument("--ascending", action="store_true", help="smallest first")
    parser.add_argument("--top", type=positive, metavar="N", help="show only the first N rows")
    parser.add_argument("--by-thread", action="store_true", help="show a row for each thread")
    parser.add_argument(
        "--deduce", action="store_true",
        help="also count calls that lost their exit: they end with their caller",
    )  # fmt: skip
    add_examples(
        parser,
        "etrace xray account -m tool xray-log.tool.1",
        "etrace xray account --top 20 --format csv -m tool xray-log.tool.1",
    )


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


def _account_text(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
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


def _account_csv(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.write(CSV_HEAD)
    seconds = report.clock.seconds
    for row in report.rows:
        times = (
            row.minimum, row.median, row.percentile_90, row.percentile_99, row.maximum, row.total,
        )  # fmt: skip
        writer.write(
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


def _account_json(report: Report, session: Session, by_thread: bool) -> Iterator[str]:
    document = {
        "frequency_hz": report.clock.hz, "calls": report.n_calls,
        "unmatched_exits": report.n_unmatched_exits, "deduced": report.n_deduced,
        "unfinished": report.n_unfinished, "backwards": report.n_backwards,
        "functions": [_json_row(row, session, by_thread) for row in report.rows],
    }  # fmt: skip
    yield json.dumps(document, indent=1) + "\n"


WRITERS = {"text": _account_text, "csv": _account_csv, "json": _account_json}


def run_account(args: argparse.Namespace) -> int:
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


# ---- stack ----

N_SHOWN = 10
MAX_INDENT = 60


def declare_stack(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    add_format(
        parser,
        "text",
        "folded",
        "csv",
        "json",
        text="format of the output; folded is for flamegraph.pl and speedscope",
    )
    parser.add_argument(
        "--by", choices=("self", "total", "count"), default="self",
        help="weight of a stack: time in its last function, with what that calls, or number of "
        "calls (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--top",
        type=positive,
        metavar="N",
        help=f"show only the N heaviest stacks (default in text: {N_SHOWN})",
    )
    parser.add_argument("--by-thread", action="store_true", help="keep threads apart")
    parser.add_argument(
        "--deduce", action="store_true",
        help="also count calls that lost their exit: they end with their caller",
    )  # fmt: skip
    add_examples(
        parser,
        "etrace xray stack -m tool xray-log.tool.1",
        "etrace xray stack --format folded -m tool xray-log.tool.1",
    )


def _value(node: Node, weight: Weight, session: Session) -> str:
    value = node.weight(weight)
    return str(value) if weight == "count" else show_ns(session.clock.ns(value))


def _title(found: Stacks) -> str:
    return "" if found.thread < 0 else f"thread {found.thread} of process {found.process}\n"


def _stack_text(found: Stacks, weight: Weight, top: int | None, session: Session) -> Iterator[str]:
    shown = found.top(weight, top or N_SHOWN)
    n_stacks = sum(node.count > 0 for node in found.nodes)
    stacks = count(n_stacks, "different stack")
    yield f"{_title(found)}{stacks}; the first {len(shown)} by {weight}:\n"
    for node in shown:
        yield f"\n{_value(node, weight, session)} in {count(node.count, 'call')} of {node.name}\n"
        for part in node.path():
            yield (
                f"  {part.count:>10}  {show_ns(session.clock.ns(part.ticks)):>9}  "
                f"{'  ' * min(part.depth, MAX_INDENT)}{part.name}\n"
            )


def _folded(found: Stacks, weight: Weight, session: Session) -> Iterator[str]:
    prefix = "" if found.thread < 0 else f"thread {found.thread};"
    for line in found.folded(weight):
        names, _, value = line.rpartition(" ")
        number = int(value) if weight == "count" else session.clock.ns(int(value))
        yield f"{prefix}{names} {number}\n"


def _object(found: Stacks, node: Node, session: Session) -> dict[str, Any]:
    ns = session.clock.ns
    out: dict[str, Any] = {
        "stack": [part.name for part in node.path()], "count": node.count,
        "total_ns": ns(node.ticks), "self_ns": ns(node.self_ticks),
    }  # fmt: skip
    return out if found.thread < 0 else out | {"process": found.process, "thread": found.thread}


def _stack_json(all_found: Sequence[Stacks], args: argparse.Namespace, session: Session) -> str:
    rows = [_object(f, node, session) for f in all_found for node in f.top(args.by, args.top)]
    return json.dumps({"frequency_hz": session.clock.hz, "stacks": rows}, indent=1) + "\n"


def _stack_csv(all_found: Sequence[Stacks], args: argparse.Namespace, session: Session) -> str:
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.write(("count", "total_ns", "self_ns", "process", "thread", "stack"))
    for found in all_found:
        for node in found.top(args.by, args.top):
            row = _object(found, node, session)
            figures = (row[key] for key in ("count", "total_ns", "self_ns"))
            writer.write(
                (*figures, row.get("process", ""), row.get("thread", ""), ";".join(row["stack"]))
            )
    return text.getvalue()


def _pieces(
    all_found: Sequence[Stacks], args: argparse.Namespace, session: Session
) -> Iterator[str]:
    if args.format == "json":
        yield _stack_json(all_found, args, session)
    elif args.format == "csv":
        yield _stack_csv(all_found, args, session)
    for found in all_found:
        if args.format == "folded":
            yield from _folded(found, args.by, session)
        elif args.format == "text":
            yield from _stack_text(found, args.by, args.top, session)


def run_stack(args: argparse.Namespace) -> int:
    """Print the stacks."""
    session = options.make_session(args)
    if args.by_thread:
        all_found = list(stacks_by_thread(session, deduce=args.deduce))
    else:
        all_found = [stacks(session, deduce=args.deduce)]
    with options.open_output(args) as stream:
        for text in _pieces(all_found, args, session):
            stream.write(text.encode(errors="replace"))
    native = all_found[0].native if all_found else session.account(percentiles=False)
    return options.finish_account(session, native)


# ---- flame ----


def declare_flame(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument("--title", help="title of the page (default: the names of the logs)")
    parser.add_argument(
        "--deduce", action="store_true",
        help="also count calls that lost their exit: they end with their caller",
    )  # fmt: skip
    add_examples(
        parser,
        "etrace xray flame -m tool xray-log.tool.1 -o flame.html",
        "etrace xray flame --title nightly -m tool xray-log.tool.1 -o flame.html",
    )


def run_flame(args: argparse.Namespace) -> int:
    """Write the page."""
    session = options.make_session(args)
    found = stacks(session, deduce=args.deduce)
    title = args.title or ", ".join(Path(path).name for path in args.logs)
    with options.open_output(args) as stream:
        stream.write(render_flame_graph(session, found, title).encode(errors="replace"))
    return options.finish_account(session, found.native)
