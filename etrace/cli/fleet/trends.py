# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet trends`: a figure by commit, its changes, and a plot."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from etrace.cli.fleet.options import add_fleet, add_range, opened, range_of
from etrace.cli.options.common import add_examples, add_format
from etrace.cli.show.output import put, writing
from etrace.errors import UsageError

if TYPE_CHECKING:
    from etrace.fleet.trends import Trend

OF_BUILDS, OF_MODULES = ("time", "cpu", "commands"), ("size", "dependencies")


def declare_trends(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet trends`."""
    add_fleet(parser)
    parser.add_argument(
        "--figure", choices=(*OF_BUILDS, *OF_MODULES),
        help="what is shown (default: time; of a module its size)",
    )  # fmt: skip
    of = parser.add_mutually_exclusive_group()
    of.add_argument("--of-module", metavar="FILE", help="a linked module, as the fleet names it")
    of.add_argument("--of-step", metavar="STEP", help="time of a step: 'cc1 lvm.c'")
    add_range(parser)
    add_format(parser, "text", "json")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="also draw it as a picture")
    add_examples(
        parser, "etrace fleet trends --fleet /srv/fleet --project lua",
        "etrace fleet trends --of-module src/lua --figure dependencies --svg lua.svg",
    )  # fmt: skip


def _subject(args: argparse.Namespace) -> tuple[str, str]:
    """Return the figure and what it is of. UsageError."""
    if args.of_step is not None:
        if args.figure not in (None, "time"):
            raise UsageError("of a step there is its time alone", "leave out --figure")
        return "step", args.of_step
    figure = args.figure or ("size" if args.of_module else "time")
    if (args.of_module is not None) != (figure in OF_MODULES):
        one = "a module" if figure in OF_MODULES else "a build"
        raise UsageError(f"{figure} is a figure of {one}", "--of-module FILE --figure size")
    return figure, args.of_module or ""


def run_trends(args: argparse.Namespace) -> int:
    """Run `etrace fleet trends`."""
    from etrace.fleet import plot
    from etrace.fleet.trends import trend

    found = trend(opened(args), *_subject(args), range_of(args))
    if args.svg is not None:
        with writing(args.svg) as stream:
            stream.write(plot.svg(found).encode())
    if args.format == "json":
        put(json.dumps(record(found), indent=1) + "\n")
        return 0
    columns = shutil.get_terminal_size((100, 24)).columns
    put("".join(f"{line}\n" for line in plot.lines(found, columns)))
    for change in found.changes:
        point = found.points[change.at]
        before, after = (plot.number(value, found.unit) for value in (change.before, change.after))
        put(
            f"{point.commit}  {point.time:%Y-%m-%d}  {before} -> {after}, "
            f"noise {plot.number(change.noise, found.unit)}\n"
        )
    if not found.changes:
        put("no change beyond the noise\n")
    return 0


def record(found: Trend) -> dict[str, object]:
    """Return a trend as `--json` prints it."""
    return {
        "title": found.title,
        "unit": found.unit,
        "points": [
            {"commit": p.commit, "time": p.time.isoformat(), "mean": p.mean,
             "deviation": p.deviation, "builds": len(p.values)}
            for p in found.points
        ],
        "changes": [
            {"commit": found.points[c.at].commit, "before": c.before, "after": c.after,
             "noise": c.noise}
            for c in found.changes
        ],
    }  # fmt: skip
