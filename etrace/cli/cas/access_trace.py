# SPDX-License-Identifier: Apache-2.0
"""`cas export file-access-trace`: what the build, or one process and its descendants, accessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from etrace.cli.ending import say
from etrace.errors import EtraceError
from etrace.export.file_access_trace import MAX_DIGITS, Export, kept
from etrace.figures import agree
from etrace.imports.access_trace import forms, writer
from etrace.imports.access_trace.model import VERSIONS, Layout

if TYPE_CHECKING:
    import argparse

    from libetrace.image.file import Image

    from etrace.export.file_access_trace import MAX_DIGITS, Export, kept
from etrace.imports.access_trace.model import AccessTrace

DEFAULT_VERSION = 1
TIMES = "times of day are counted back from when the trace was written: stamps have none"
#: attributes of the options
NAMES = ("format_version", "path_blocks", "root")


def add_all(parser: argparse._ArgumentGroup) -> None:
    """Add the options."""
    parser.add_argument(
        "--format-version", type=int, choices=VERSIONS, metavar="N",
        help="version of the format: 1, 2 or 3 (default: that of the imported trace, else 1)",
    )  # fmt: skip
    parser.add_argument(
        "--path-blocks", choices=[each.value for each in Layout],
        help="where version 1 has its paths: in both blocks or all in the first "
        "(default: as the imported trace, else split)",
    )  # fmt: skip
    parser.add_argument(
        "--root", metavar="PROCESS",
        help="only what this process (upid, or its pid) and its descendants did",
    )  # fmt: skip


def export(image: Image, args: argparse.Namespace, stream: BinaryIO) -> None:
    """Write the trace of a database, and say what it lacks. EtraceError, OSError."""
    layout = None if args.path_blocks is None else Layout(args.path_blocks)
    known = kept(image)
    if known is None:
        trace = _made(image, args, layout)
    else:
        version = args.format_version or known.version
        forms.check(version, layout)
        trace = forms.subtree(known, _pid(args.root)) if args.root else known
        usual = forms.layout_of(known) if version == 1 else Layout.MANIFEST
        trace = forms.in_form(trace, version, layout or usual)
    writer.write(trace, stream)


def _pid(text: str) -> int:
    """Return the pid of an imported trace."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise EtraceError(f"{text}: no process", "--root takes a pid of the imported trace")
    return int(text)


def _made(image: Image, args: argparse.Namespace, layout: Layout | None) -> AccessTrace:
    version = args.format_version or DEFAULT_VERSION
    forms.check(version, layout)
    made = Export(image)
    is_split = version == 1 and layout is not Layout.MANIFEST
    root = made.upid(args.root) if args.root else None
    trace = made.trace(version, is_split=is_split, root=root)
    lost = [agree(n, text) for n, text in made.lost()]
    lost += ["closes", "copies of descriptors", "repeated opens of a file by one program"]
    say(f"cas: the format has no place for: {', '.join(lost)}\n")
    if made.is_timed_by_file:
        say(f"cas: {TIMES}\n")
    return trace
