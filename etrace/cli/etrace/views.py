# SPDX-License-Identifier: Apache-2.0
"""`etrace summary`, `report` and `timeline`: a build as text, as a page, for trace viewers."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

from libetrace.image.file import Image

from etrace.cli.ending import say
from etrace.cli.opening import find, open_view, prepared
from etrace.cli.options.common import add_examples, add_place
from etrace.cli.show.output import opened
from etrace.errors import UsageError
from etrace.figures import count, seconds, size
from etrace.nfsdb.files import locate
from etrace.query import summary
from etrace.query.facts import origin_of
from etrace.query.rows.file_kinds import USUAL, FileKind
from etrace.query.summary import Execution, Product, Program, Summary
from etrace.timeline import chrome, perfetto
from etrace.timeline.counters import counters
from etrace.timeline.slices import Lanes, slices
from etrace.timeline.time_trace import TimeTraces
from etrace.timeline.xray_calls import XRayCalls

# ---- summary ----

#: nouns of the kinds; empty for those that `cas deps` hides by default
NOUNS = {
    FileKind.CONFIG: "configuration file",
    FileKind.DATA: "data file",
    **dict.fromkeys(frozenset(FileKind) - USUAL, ""),
}


def declare_summary(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace summary`."""
    add_place(parser)
    add_examples(parser, "etrace summary", "etrace summary ~/project")


def _slow(execution: Execution, width: int) -> str:
    """Return one line."""
    program = PurePosixPath(execution.binary).name
    cpu = "" if execution.cpu_ns is None else f"  {seconds(execution.cpu_ns):>11} CPU"
    start = f"{seconds(execution.elapsed):>11}{cpu}  {program:<8} "
    return start + _command(execution.argv, max(width - len(start), 24))


def _product(product: Product) -> Iterator[str]:
    parts = ((product.files.get(kind, 0), NOUNS.get(kind, kind)) for kind in FileKind)
    shown = ", ".join(count(n, noun) for n, noun in parts if n and noun)
    yield f"  {os.path.relpath(product.path)}  ({product.kind}, {size(product.n_bytes)})"
    yield f"      {shown or 'nothing that was read'}"
    yield f"      by {count(product.commands, 'command')}: {', '.join(product.tools)}"


def _program(program: Program) -> str:
    times = "time " if program.count == 1 else "times"
    cpu = "" if program.cpu_ns is None else f" {seconds(program.cpu_ns):>11} CPU"
    return f"  {program.name:<20} {program.count:>6} {times} {seconds(program.elapsed_ns):>11}{cpu}"


def _command(argv: tuple[str, ...], room: int) -> str:
    """Return a command; a long one keeps its end, which has the names of files."""
    text = shlex.join(argv)
    return text if len(text) <= room else f"{text[: room // 3]}...{text[-(room - room // 3 - 3) :]}"


def _failed(page: Summary, width: int) -> Iterator[str]:
    """Why the build failed, the cause first."""
    if page.interrupted_by:
        yield f"the build was interrupted by {page.interrupted_by}"
    for failure in page.failures:
        yield f"failed with {failure.ended}, {seconds(failure.end_ns)} after the build began"
        yield f"  {_command(failure.argv, width - 2) or '(no command)'}"
        yield from (f"    {os.fsdecode(line)}" for line in failure.lines)
    if page.n_failures > len(page.failures):
        yield f"and {page.n_failures - len(page.failures)} more failed the build"
    if page.interrupted_by or page.failures:
        yield ""


def text(page: Summary, width: int) -> Iterator[str]:
    """Lines of the page."""
    yield from _failed(page, width)
    found = page.totals
    cpu = "" if found.cpu_ns is None else f", CPU {seconds(found.cpu_ns)}"
    yield (
        f"{count(found.processes, 'process')}, {count(found.commands, 'command')}"
        f" ({found.failed:,} failed), elapsed {seconds(found.elapsed_ns)}{cpu}"
    )
    yield f"{count(found.files, 'file')} opened: {found.read:,} read, {found.written:,} written"
    for note in page.notes:
        yield from (note.text, f"  hint: {note.cure}")
    if page.slowest:
        by = "without waits for pipes" if found.cpu_ns is None else "by CPU time"
        yield from ("", f"slowest commands, {by}")
        yield from (_slow(execution, width) for execution in page.slowest)
        yield from ("", "time by program (commands that start no others)")
        yield from (_program(p) for p in page.programs)
    yield from ("", "dependencies of the binaries (cas deps lists them)")
    for product in page.products:
        yield from _product(product)
    if page.n_products > len(page.products):
        yield f"  and {page.n_products - len(page.products)} more"
    if not page.products:
        yield "  the build made no binary"


def shown(line: str) -> str:
    """Return a line for a terminal: without control characters and what it cannot print."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c) & 0xFF:02x}" for c in line)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # no stream at all: `>&-`
    return plain.encode(encoding, errors="backslashreplace").decode(encoding)


def run_summary(args: argparse.Namespace) -> int:
    """Run `etrace summary`."""
    where = find(args)
    width = shutil.get_terminal_size((100, 24)).columns
    image, files = prepared(where), locate(where)
    made = files.json if files.json.exists() else files.image
    page, origin = summary.summarise(image), origin_of(made)
    if origin.newer is not None:
        say(f"etrace: {made} is older than {origin.newer}: it is of another build\n")
        say(f"  hint: make it again: cas parse {origin.newer}\n")
    for line in (*origin.remarks, *text(page, width)):
        print(shown(line))
    return 0


# ---- report ----

DEFAULT = Path("build.html")


def declare_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace report`."""
    add_place(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=DEFAULT,
        help=f"the page (default: {DEFAULT})",
    )  # fmt: skip
    add_examples(parser, "etrace report", "etrace report ~/project -o project.html")


def run_report(args: argparse.Namespace) -> int:
    """Run `etrace report`."""
    write_report(open_view(args), args.output)
    return 0


def write_report(image: Image, output: Path, *, is_quiet: bool = False) -> None:
    """Write the page of a build, and say where it is. EtraceError, OSError."""
    from etrace.report.page import render

    write_page(render(image), output, image.path, what="report", is_quiet=is_quiet)


def write_page(text: str, output: Path, *models: Path, what: str, is_quiet: bool) -> None:
    """Write a page for those who may read the models, and say where it is. EtraceError, OSError."""
    from etrace.cli.show.output import writing

    page = text.encode()
    with writing(output, *models) as stream:
        stream.write(page)
    if not is_quiet:
        say(f"etrace: the {what} is {output} ({size(len(page))}); open it in a browser\n")


# ---- timeline ----

WRITERS = {"chrome": chrome.write, "perfetto": perfetto.write}
HTML = "html"
#: what a terminal cannot show goes to a file, as that of `etrace report` does
DEFAULTS = {
    "chrome": Path("timeline.json"), "perfetto": Path("timeline.pftrace"),
    HTML: Path("timeline.html"),
}  # fmt: skip


def declare_timeline(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace timeline`."""
    add_place(parser)
    parser.add_argument(
        "--format", dest="to", choices=sorted((*WRITERS, HTML)), default="chrome",
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
        "it; may be repeated",
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
    add_examples(
        parser, "etrace timeline -o build.json", "etrace timeline --format html -o build.html"
    )


def _calls(image: Image, args: argparse.Namespace) -> XRayCalls:
    """Read the logs; a message says why one of them is left out."""
    calls = XRayCalls(image, args.xray, args.maps)
    for line in calls.left_out:
        say(f"etrace timeline: warning: {line}\n")
    return calls


def _write_page(image: Image, output: Path | None) -> None:
    from etrace.report.page import render

    text = render(image, first="timeline").encode()
    with opened(output, image.path) as stream:
        stream.write(text)


def run_timeline(args: argparse.Namespace) -> int:
    """Run `etrace timeline`."""
    if args.to == HTML and (args.lanes or args.xray or args.maps):
        raise UsageError(
            "the page has lanes of its own and no calls", "leave out --lanes, --xray and -m"
        )
    image = open_view(args)
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
        say(f"etrace: the timeline is {output} ({length}); open it in {viewer}\n")
    return 0


def _write(image: Image, args: argparse.Namespace, output: Path | None) -> None:
    calls, phases = _calls(image, args), TimeTraces(image)
    lanes = Lanes(args.lanes or Lanes.TREE)
    found = slices(image, lanes, lambda row: chain(phases(row), calls(row)))
    with opened(output, image.path) as stream:
        WRITERS[args.to](stream, found, counters(image))
