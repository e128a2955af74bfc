# SPDX-License-Identifier: Apache-2.0
"""Options of compile_commands.json, and the messages about what it has and lacks."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etrace.cli.ending import say
from etrace.cli.options import selection
from etrace.errors import UsageError
from etrace.figures import count
from etrace.query.select import sources
from etrace.query.select.filters import parse_opens
from etrace.query.select.sources import SourceSelection

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.export.compile_commands import Entry, Form
    from etrace.export.merging import Merge
    from etrace.query.diagnosis import Diagnosis

STYLES = ("absolute", "as-is", "relative", "canonical")
NAMES = (
    "existing", "below", "all", "filters", "rules", "paths", "text", "keep_response_files",
    "headers", "links", "append", "update",
)  # fmt: skip
#: programs that a message lists at most
N_LISTED = 12
HINT = (
    "  hint: describe a compiler in $XDG_CONFIG_HOME/etrace/compilers/NAME.toml, then: cas pp;"
    " see docs/exports.md\n"
)


#: reason -> words
_WORDS = {
    sources.TEMPORARY: "of sources that the build made and removed",
    sources.STDIN: "of sources that came through standard input",
    sources.GONE: "of sources that are not there now",
}
#: what an option leaves out is reported only when nothing is left
_ASKED = {
    sources.ELSEWHERE: "of sources outside --below",
    sources.RULED: "of sources that --include and --exclude leave out",
    sources.FILTERED: "of sources that --filter does not select",
}


def add_sources(parser: argparse._ActionsContainer) -> None:
    """Add `--existing`, `--below` and `--all-sources`."""
    add = parser.add_argument
    add("--existing", action="store_true", help="only sources that are there now")
    add("--below", metavar="DIR", type=os.fsencode, action="append", default=[],
        help="only sources in DIR; may be repeated")  # fmt: skip
    add(
        "--all-sources",
        dest="all",
        action="store_true",
        help="also sources that the build made and removed, and standard input",
    )


def source_selection(image: Image, args: argparse.Namespace, filters: list[str]) -> SourceSelection:
    """Return the choice of a command line; `filters` apply to the sources."""
    tests = [] if args.all else [sources.usual(image)]
    if args.existing:
        tests.append(sources.existing)
    if args.below:
        tests.append(sources.below(args.below))
    if getattr(args, "rules", None):
        tests.append(sources.ruled(args.rules))
    if filters:
        tests.append(sources.held(image, parse_opens(filters)))
    return SourceSelection(*tests)


def report_left_out(chosen: SourceSelection) -> None:
    """Report on standard error what a choice left out by default."""
    words = _WORDS if chosen.n_taken else _WORDS | _ASKED
    said = {why: n for why, n in chosen.left_out.items() if why in words}
    parts = [f"{n:,} {words[why]}" for why, n in said.items()]
    if not parts:
        return
    n_entries = sum(said.values())
    say(f"cas: left out {count(n_entries, 'entry')}: {', '.join(parts)}")
    usual = {sources.TEMPORARY, sources.STDIN} & said.keys()
    say("; --all-sources has them\n" if usual and not _ASKED.keys() & said.keys() else "\n")


class _Rule(argparse.Action):
    """`--include` and `--exclude`: one list, in the order of the command line."""

    def __call__(
        self, _: argparse.ArgumentParser, args: argparse.Namespace, value: Any, option: Any = None
    ) -> None:
        """Append whether it includes, and the pattern."""
        args.rules = [*args.rules, (option == "--include", os.fsencode(value))]


def add_all(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas export compile_commands`."""
    group = parser.add_argument_group("for compile_commands")
    add_sources(group)
    selection.add_filter(group)
    add = group.add_argument
    for option, what in (("--include", "only"), ("--exclude", "not")):
        add(option, dest="rules", metavar="GLOB", action=_Rule, default=[],
            help=f"{what} sources in this directory, or that match; the last one wins")  # fmt: skip
    add("--paths", choices=STYLES,
        help="how to write `file` and `output` (default: absolute)")  # fmt: skip
    add("--command", dest="text", action="store_true",
        help="write `command`, a string for a shell, instead of `arguments`")  # fmt: skip
    add("--keep-response-files", action="store_true",
        help="leave @FILE unchanged (default: put in what the file held)")  # fmt: skip
    add("--headers", action="store_true", help="also entries for the headers of the project")
    add("--links", metavar="FILE", type=Path, help="write the link and archive commands to FILE")
    add("--append", action="store_true", help="keep the entries that the output has")
    add("--update", action="store_true",
        help="keep the entries of files that were not compiled again")  # fmt: skip


def form(args: argparse.Namespace) -> Form:
    """Return how a command line wants entries."""
    from etrace.export.command_lines import PathStyle
    from etrace.export.compile_commands import Form

    style = PathStyle(args.paths or STYLES[0])
    return Form(style, args.text, not args.keep_response_files, args.headers)


def merge(args: argparse.Namespace) -> Merge | None:
    """Return what to do with the entries that the output has. UsageError."""
    from etrace.export.merging import Merge

    if not (args.append or args.update):
        return None
    if args.append and args.update:
        raise UsageError("--append and --update are two ways", "give one of them")
    if args.output is None:
        raise UsageError("--append and --update change a file", "name it: -o FILE")
    return Merge.APPEND if args.append else Merge.UPDATE


def report_missing(image: Image, found: list[Entry], chosen: SourceSelection) -> None:
    """Say why there are no entries, or which compilers are not known."""
    from etrace.query.diagnosis import diagnose

    it = diagnose(image)
    if found:
        report_unlisted(it, "no entries for")
    elif not chosen.left_out.total():
        _report_empty(it)


def report_unlisted(it: Diagnosis, lacks: str) -> None:
    """Say which compilers ran that are not known; `lacks` is what an answer lacks of them."""
    if it.unknown:
        calls = count(it.unknown.total(), "call")
        say(f"cas: {lacks} {calls} of unknown compilers: {_listed(it.unknown)}\n{HINT}")
    for note in it.notes():
        said = f"{lacks} {note.text}" if note.is_lacking else note.text
        say(f"cas: {said}\n  hint: {note.cure}; see docs/exports.md\n")


def _report_empty(it: Diagnosis) -> None:
    ran = f"{count(it.n_programs, 'program')} ran"
    if it.unknown:
        say(f"cas: no entries: {ran}; these compiled, but are not known: {_listed(it.unknown)}\n")
        say(HINT)
    elif it.inside:
        say(f"cas: no entries: {ran}; these compiled sources inside: {_listed(it.inside)}\n")
        say("".join(f"  hint: {note.cure}; see docs/exports.md\n" for note in it.notes()))
    elif not it.n_compilers:
        say(f"cas: no entries: {ran}, none of them a known compiler: {_listed(it.others)}\n{HINT}")
    else:
        say(f"cas: no entries: {_compilers(it)}\n")


def _compilers(it: Diagnosis) -> str:
    """Return what the known compilers did instead of compiling."""
    failed = f", {it.n_failed:,} of them failed" if it.n_failed else ""
    unread = ""
    if it.n_unread:
        unread = f"; the response files of {count(it.n_unread, 'command')} are gone"
    ran = f"{count(it.n_compilers, 'call')} of known compilers{failed}"
    return f"{ran}; the others only linked, preprocessed or answered questions{unread}"


def _listed(programs: Counter[bytes]) -> str:
    shown = [f"{os.fsdecode(path)} ({n:,})" for path, n in programs.most_common(N_LISTED)]
    n_more = len(programs) - len(shown)
    return ", ".join([*shown, f"and {n_more} more"] if n_more else shown)
