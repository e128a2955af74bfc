# SPDX-License-Identifier: Apache-2.0
"""`etrace timeline`: a build for trace viewers."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

from libetrace.image.file import Image

from etrace.cli.ending import tell
from etrace.cli.options.common import add_database
from etrace.cli.show.figures import size
from etrace.cli.show.output import opened
from etrace.errors import UsageError
from etrace.nfsdb.store import open_database
from etrace.timeline import chrome, perfetto
from etrace.timeline.counters import counters
from etrace.timeline.slices import Lanes, slices
from etrace.timeline.time_trace import TimeTraces
from etrace.timeline.xray_calls import XRayCalls

WRITERS = {"chrome": chrome.write, "perfetto": perfetto.write}
HTML = "html"
#: what a terminal cannot show goes to a file, as that of `etrace report` does
DEFAULTS = {
    "chrome": Path("timeline.json"), "perfetto": Path("timeline.pftrace"),
    HTML: Path("timeline.html"),
}  # fmt: skip


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace timeline`."""
    add_database(parser)
    parser.add_argument(
        "place", metavar="DIR", nargs="?", type=Path,
        help="directory of the database, as --dbdir DIR",
    )  # fmt: skip
    parser.add_argument(
        "--to", choices=sorted((*WRITERS, HTML)), default="chrome",
        help="format: chrome is JSON, which Perfetto, chrome://tracing and speedscope read; "
        "perfetto is Perfetto's own, smaller, and needs the library perfetto; html is the page of "
        "etrace report with its timeline first, without --lanes, --xray and -m "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--lanes", choices=[each.value for each in Lanes],
        help="tree: each execution inside the one that started it; packed: only executions that "
        "start no others, on as few lanes as possible (default: tree)",
    )  # fmt: skip
    parser.add_argument(
        "--xray", action="append", default=[], metavar="LOG",
        help="an XRay log of a program of the build: its calls lie inside the execution that wrote "
        "it; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "-m", "--map", action="append", default=[], metavar="[N=]FILE", dest="maps",
        help="program that wrote the logs, for names; N=FILE: shared object number N",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE",
        help="write to FILE, which appears whole or not at all (default: standard output, or "
        "timeline.json, .pftrace or .html when that is a terminal)",
    )  # fmt: skip


def _calls(image: Image, args: argparse.Namespace) -> XRayCalls:
    """Read the logs; a message tells why one of them is left out."""
    calls = XRayCalls(image, args.xray, args.maps)
    for line in calls.left_out:
        tell(f"etrace timeline: warning: {line}\n")
    return calls


def _write_page(image: Image, output: Path | None) -> None:
    from etrace.report.page import render

    text = render(image, first="timeline").encode()
    with opened(output, image.path) as stream:
        stream.write(text)


def run(args: argparse.Namespace) -> int:
    """Run `etrace timeline`."""
    if args.place is not None and args.database is not None:
        raise UsageError("two databases are given", "leave out DIR or --dbdir")
    if args.to == HTML and (args.lanes or args.xray or args.maps):
        raise UsageError(
            "the page has lanes of its own and no calls", "leave out --lanes, --xray and -m"
        )
    image = open_database(args.place or args.database)
    output = args.output
    if output is None and sys.stdout is not None and sys.stdout.isatty():
        output = DEFAULTS[args.to]
    if args.to == HTML:
        _write_page(image, output)
    else:
        _write(image, args, output)
    if args.output is None and output is not None:
        viewer = "a browser" if args.to == HTML else "https://ui.perfetto.dev"
        length = size(output.stat().st_size)
        tell(f"etrace: the timeline is {output} ({length}); open it in {viewer}\n")
    return 0


def _write(image: Image, args: argparse.Namespace, output: Path | None) -> None:
    calls, phases = _calls(image, args), TimeTraces(image)
    lanes = Lanes(args.lanes or Lanes.TREE)
    found = slices(image, lanes, lambda row: chain(phases(row), calls(row)))
    with opened(output, image.path) as stream:
        WRITERS[args.to](stream, found, counters(image))
