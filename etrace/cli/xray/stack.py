# SPDX-License-Identifier: Apache-2.0
"""`etrace xray stack`: which stacks of calls took the time."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from etrace.cli.options.common import positive
from etrace.cli.show.figures import count
from etrace.cli.xray import options
from etrace.cli.xray.account import show_ns
from etrace.xray.session import Session
from etrace.xray.stacks import Node, Stacks, Weight, stacks, stacks_by_thread

N_SHOWN = 10
MAX_INDENT = 60


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument(
        "--format", choices=("text", "folded", "csv", "json"), default="text",
        help="folded: for flamegraph.pl and speedscope (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--by", choices=("self", "total", "count"), default="self",
        help="what makes a stack heavy (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--top", type=positive, metavar="N", help=f"(default: {N_SHOWN}, in text)")
    parser.add_argument("--per-thread", action="store_true", help="threads are not merged")
    parser.add_argument(
        "-d", "--deduce", action="store_true",
        help="count calls that lost their exit: they end with their caller",
    )  # fmt: skip


def _value(node: Node, weight: Weight, session: Session) -> str:
    value = node.weight(weight)
    return str(value) if weight == "count" else show_ns(session.clock.ns(value))


def _title(found: Stacks) -> str:
    return "" if found.thread < 0 else f"thread {found.thread} of process {found.process}\n"


def _text(found: Stacks, weight: Weight, top: int | None, session: Session) -> Iterator[str]:
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


def _json(all_found: Sequence[Stacks], args: argparse.Namespace, session: Session) -> str:
    rows = [_object(f, node, session) for f in all_found for node in f.top(args.by, args.top)]
    return json.dumps({"frequency_hz": session.clock.hz, "stacks": rows}, indent=1) + "\n"


def _csv(all_found: Sequence[Stacks], args: argparse.Namespace, session: Session) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("count", "total_ns", "self_ns", "process", "thread", "stack"))
    for found in all_found:
        for node in found.top(args.by, args.top):
            row = _object(found, node, session)
            figures = (row[key] for key in ("count", "total_ns", "self_ns"))
            writer.writerow(
                (*figures, row.get("process", ""), row.get("thread", ""), ";".join(row["stack"]))
            )
    return text.getvalue()


def _pieces(
    all_found: Sequence[Stacks], args: argparse.Namespace, session: Session
) -> Iterator[str]:
    if args.format == "json":
        yield _json(all_found, args, session)
    elif args.format == "csv":
        yield _csv(all_found, args, session)
    for found in all_found:
        if args.format == "folded":
            yield from _folded(found, args.by, session)
        elif args.format == "text":
            yield from _text(found, args.by, args.top, session)


def run(args: argparse.Namespace) -> int:
    """Print the stacks."""
    session = options.make_session(args)
    if args.per_thread:
        all_found = list(stacks_by_thread(session, deduce=args.deduce))
    else:
        all_found = [stacks(session, deduce=args.deduce)]
    with options.open_output(args) as stream:
        for text in _pieces(all_found, args, session):
            stream.write(text.encode(errors="replace"))
    native = all_found[0].native if all_found else session.account(percentiles=False)
    return options.finish_account(session, native)
