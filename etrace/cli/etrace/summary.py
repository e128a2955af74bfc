# SPDX-License-Identifier: Apache-2.0
"""`etrace summary`: show a build on one page."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from etrace.cli.ending import tell
from etrace.cli.options.common import add_database
from etrace.cli.show.figures import count, seconds, size
from etrace.errors import UsageError
from etrace.nfsdb.files import locate
from etrace.nfsdb.store import open_database
from etrace.query import summary
from etrace.query.classes.file_kinds import USUAL, FileKind
from etrace.query.given.origin import origin_of
from etrace.query.summary import Execution, Product, Program, Summary

#: nouns of the kinds; empty for those that `cas deps` hides by default
NOUNS = {
    FileKind.CONFIG: "configuration file",
    FileKind.DATA: "data file",
    **dict.fromkeys(frozenset(FileKind) - USUAL, ""),
}


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace summary`."""
    add_database(parser)
    parser.add_argument(
        "place", metavar="DIR", nargs="?", type=Path, help="the same as --dbdir DIR"
    )


def _slow(execution: Execution, width: int) -> str:
    """Return one line; a long command keeps its end, which has the names of files."""
    program = PurePosixPath(execution.binary).name
    cpu = "" if execution.cpu_ns is None else f"  {seconds(execution.cpu_ns):>11} CPU"
    start = f"{seconds(execution.elapsed):>11}{cpu}  {program:<8} "
    text, room = shlex.join(execution.argv), max(width - len(start), 24)
    if len(text) > room:
        text = f"{text[: room // 3]}...{text[-(room - room // 3 - 3) :]}"
    return start + text


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


def text(page: Summary, width: int) -> Iterator[str]:
    """Lines of the page."""
    yield (
        f"{count(page.processes, 'process')}, {count(page.executions, 'program')} run"
        f" ({page.failed} with a status other than 0), {seconds(page.elapsed_ns)}"
        + ("" if page.cpu_ns is None else f", {seconds(page.cpu_ns)} CPU")
    )
    yield f"{count(page.files, 'file')}: {page.read:,} read, {page.written:,} written"
    if page.slowest:
        by = "without waits for pipes" if page.cpu_ns is None else "by CPU time"
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


def run(args: argparse.Namespace) -> int:
    """Run `etrace summary`."""
    if args.place is not None and args.database is not None:
        raise UsageError("two databases are given", "leave out DIR or --dbdir")
    where = args.place or args.database
    width = shutil.get_terminal_size((100, 24)).columns
    files = locate(where)
    made = files.json if files.json.exists() else files.image
    page, origin = summary.summarise(open_database(made)), origin_of(made)
    if origin.newer is not None:
        tell(f"etrace: {made} is older than {origin.newer}: it is of another build\n")
        tell(f"  hint: make it again: cas parse {origin.newer}\n")
    for line in (*origin.remarks, *text(page, width)):
        print(shown(line))
    return 0
