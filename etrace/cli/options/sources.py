# SPDX-License-Identifier: Apache-2.0
"""Options that select the compiled sources for another tool, and the message about the others."""

from __future__ import annotations

import argparse
import os

from libetrace.image.file import Image

from etrace.cli.ending import tell
from etrace.cli.show.figures import count
from etrace.query.given import source_choice
from etrace.query.given.filters import parse_opens
from etrace.query.given.source_choice import SourceChoice

#: reason -> words
_WORDS = {
    source_choice.TEMPORARY: "of sources that the build made and removed",
    source_choice.STDIN: "of sources that came through standard input",
    source_choice.GONE: "of sources that are not there now",
}
#: what an option leaves out is reported only when nothing is left
_ASKED = {
    source_choice.ELSEWHERE: "of sources outside --below",
    source_choice.RULED: "of sources that --include and --exclude leave out",
    source_choice.FILTERED: "of sources that --filter does not select",
}


def add_sources(parser: argparse._ActionsContainer, *, with_all: bool = True) -> None:
    """Add `--existing`, `--below` and, unless the command has one, `--all`."""
    add = parser.add_argument
    add("--existing", action="store_true", help="only sources that are there now")
    add("--below", metavar="DIR", type=os.fsencode, action="append", default=[],
        help="only sources in DIR; may be given several times")  # fmt: skip
    if with_all:
        add("--all", action="store_true",
            help="also sources that the build made and removed, and standard input")  # fmt: skip


def choice(image: Image, args: argparse.Namespace, filters: list[str]) -> SourceChoice:
    """Return the choice of a command line; `filters` apply to the sources."""
    tests = [] if args.all else [source_choice.usual(image)]
    if args.existing:
        tests.append(source_choice.existing)
    if args.below:
        tests.append(source_choice.below(args.below))
    if getattr(args, "rules", None):
        tests.append(source_choice.ruled(args.rules))
    if filters:
        tests.append(source_choice.held(image, parse_opens(filters)))
    return SourceChoice(*tests)


def tell_left_out(chosen: SourceChoice) -> None:
    """Report on standard error what a choice left out by default."""
    words = _WORDS if chosen.n_taken else _WORDS | _ASKED
    told = {why: n for why, n in chosen.left_out.items() if why in words}
    parts = [f"{n:,} {words[why]}" for why, n in told.items()]
    if not parts:
        return
    n_entries = sum(told.values())
    tell(f"cas: left out {count(n_entries, 'entry')}: {', '.join(parts)}")
    usual = {source_choice.TEMPORARY, source_choice.STDIN} & told.keys()
    tell("; --all has them\n" if usual and not _ASKED.keys() & told.keys() else "\n")
