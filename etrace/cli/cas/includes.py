# SPDX-License-Identifier: Apache-2.0
"""`cas includes`: what headers cost the build."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from libetrace.image.file import Image

from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Facts, Record
from etrace.nfsdb.store import open_database
from etrace.query.includes import Growth, Includes, compare, compilations_of, includes

NS_PER_SECOND = 1e9
HEADING = (
    f"{'bytes':>15} {'share':>7} {'compilations':>12} {'times read':>10} {'seconds':>18}  header"
)
GROWTH_HEADING = f"{'bytes':>16} {'seconds':>10}{'':8}  header"


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas includes`."""
    parser.add_argument(
        "--module", metavar="FILE", type=os.fsencode, action="append", default=[],
        help="count only compilations that went into this linked module",
    )  # fmt: skip
    parser.add_argument(
        "--diff", metavar=("A", "B"), nargs=2, type=Path,
        help="list the headers that cost another number of bytes in database B than in A",
    )  # fmt: skip


def takes_nothing(args: argparse.Namespace) -> bool:
    """Whether the command line names its databases itself."""
    return args.diff is not None


def answer(image: Image | None, args: argparse.Namespace) -> Answer:
    """Answer with headers."""
    if image is None:
        before, after = (open_database(where) for where in args.diff)
        grown = compare(before, after, args.module)
        return Answer(
            Facts(_growth_line, {"path": "filename"}, GROWTH_HEADING),
            [_growth(each) for each in grown],
        )
    only = compilations_of(image, args.module) if args.module else None
    found = includes(image, only)
    return Answer(Facts(_line, {"path": "filename"}, HEADING), _records(image, found))


def _records(image: Image, found: Includes) -> list[Record]:
    fit = found.fit
    return [
        {
            "filename": os.fsdecode(image.path_string(header.path)),
            "opens": header.n_opens,
            "compilations": header.n_compilations,
            "size": header.n_bytes,
            "read_bytes": header.read_bytes,
            "share": header.share,
            "seconds": fit and header.read_bytes * fit.ns_a_byte / NS_PER_SECOND,
            "error": fit and header.read_bytes * fit.error / NS_PER_SECOND,
        }
        for header in found.headers
    ]


def _line(r: Record) -> str:
    time = "-" if r["seconds"] is None else f"{r['seconds']:.3f} s +-{r['error']:.3f}"
    return (
        f"{r['read_bytes']:>13,} B {100 * r['share']:>5.1f} % {r['compilations']:>12}"
        f" {r['opens']:>10} {time:>18}  {r['filename']}"
    )


def _growth(each: Growth) -> Record:
    return {
        "filename": os.fsdecode(each.path),
        "before": each.before,
        "after": each.after,
        "seconds": each.ns if each.ns is None else each.ns / NS_PER_SECOND,
        "noise": each.noise if each.noise is None else each.noise / NS_PER_SECOND,
        "is_noise": each.is_noise,
    }


def _growth_line(r: Record) -> str:
    time = "-" if r["seconds"] is None else f"{r['seconds']:+.3f} s"
    mark = " (noise)" if r["is_noise"] else ""
    change = r["after"] - r["before"]
    return f"{change:>+14,} B {time:>10}{mark:<8}  {r['filename']}"
