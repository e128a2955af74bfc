# SPDX-License-Identifier: Apache-2.0
"""`cas linked-modules`, `compiled` and their relatives: what compilers and linkers did."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options import walk as walking
from etrace.cli.options.common import add_examples, add_hash
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Compilations, Executions, Facts, Modules, Paths, Record, whole
from etrace.nfsdb.store import open_database
from etrace.query.compilations import (
    compilation_info_for,
    compilations,
    compiled,
    revcomps_for,
    revcomps_map,
)
from etrace.query.linked_modules import linked_modules

if TYPE_CHECKING:
    from etrace.query.includes import Growth, Includes

# ---- linked-modules ----


def declare_linked_modules(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas linked-modules`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--commands", action="store_true", help="list the executions that linked them instead"
    )
    walking.add_copies(parser)
    add_hash(parser)
    add_examples(parser, "cas linked-modules --relative", "cas linked-modules deps --count")


def answer_linked_modules(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with modules, or with executions of linkers."""
    modules = linked_modules(image, selecting.selection_of(args), with_copies=args.with_copies)
    if args.commands:
        rows = sorted({row for module in modules for row in module.executions})
        return Answer(Executions(image), rows)
    return Answer(Modules(image), modules)


# ---- compiled ----


def declare_compiled(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas compiled`."""
    selecting.add_all(parser)
    parser.add_argument(
        "--commands", action="store_true", help="list the executions that compiled them instead"
    )
    add_hash(parser)
    add_examples(
        parser, "cas compiled --relative", "cas compiled --filter '[path=*/src/*,type=wc]'"
    )


def answer_compiled(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths, or with executions of compilers."""
    given = selecting.selection_of(args)
    if given.is_everything:
        from etrace.cli.options.compile_commands import report_unlisted
        from etrace.query.diagnosis import unlisted

        report_unlisted(unlisted(image), "not listed:")
    if args.commands:
        execution = image["compilations"]["execution"]
        rows = [execution[row] for row in compilations(image, given)]
        return Answer(Executions(image), rows)
    return Answer(Paths(), compiled(image, given))


# ---- compilation-info-for ----


def declare_compilation_info_for(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas compilation-info-for`."""
    selecting.add_all(parser, files=True)
    add_examples(
        parser, "cas compilation-info-for src/lvm.c", "cas compilation-info-for src/lvm.c --json"
    )


def answer_compilation_info_for(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with compilations."""
    return Answer(Compilations(image), compilation_info_for(image, selecting.selection_of(args)))


# ---- revcomps-for ----


def declare_revcomps_for(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas revcomps-for`."""
    selecting.add_all(parser, files=True)
    parser.add_argument(
        "--rcm",
        action="store_true",
        help="print a map from each file to the compiled files that read it",
    )
    add_hash(parser)
    add_examples(parser, "cas revcomps-for src/lvm.h", "cas revcomps-for src/lvm.h --count")


def answer_revcomps_for(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with paths, or with one map."""
    given = selecting.selection_of(args)
    if args.rcm:
        found = revcomps_map(image, given).items()
        return whole({os.fsdecode(f): [os.fsdecode(p) for p in paths] for f, paths in found})
    return Answer(Paths(), revcomps_for(image, given))


# ---- includes ----


NS_PER_SECOND = 1e9
HEADING = (
    f"{'bytes':>15} {'share':>7} {'compilations':>12} {'times read':>10} {'seconds':>18}  header"
)
GROWTH_HEADING = f"{'bytes':>16} {'seconds':>10}{'':8}  header"


def declare_includes(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas includes`."""
    parser.add_argument(
        "--module", metavar="FILE", type=os.fsencode, action="append", default=[],
        help="count only compilations that went into this linked module",
    )  # fmt: skip
    parser.add_argument(
        "--diff", metavar=("A", "B"), nargs=2, type=Path,
        help="list the headers that cost another number of bytes in database B than in A",
    )  # fmt: skip
    add_examples(parser, "cas includes", "cas includes --module src/lua --json")


def takes_nothing_includes(args: argparse.Namespace) -> bool:
    """Whether the command line names its databases itself."""
    return args.diff is not None


def answer_includes(image: Image | None, args: argparse.Namespace) -> Answer:
    """Answer with headers."""
    from etrace.query.includes import compare, compilations_of, includes

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
