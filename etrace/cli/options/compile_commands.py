# SPDX-License-Identifier: Apache-2.0
"""Options of compile_commands.json, and the messages about what it has and lacks."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etrace.cli.ending import tell
from etrace.cli.options import selection, sources
from etrace.cli.show.figures import count
from etrace.errors import UsageError

if TYPE_CHECKING:
    from libetrace.image.file import Image

    from etrace.export.commands.diagnosis import Diagnosis
    from etrace.export.commands.merging import Merge
    from etrace.export.compile_commands import Entry, Form
    from etrace.query.given.source_choice import SourceChoice

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
INSIDE_HINT = (
    "  hint: the command lines of ant and Gradle name no source; ant runs javac as a program with"
    ' fork="yes"; see docs/exports.md\n'
)


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
    sources.add_sources(group)
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
        help="leave @FILE as it is (default: put in what the file held)")  # fmt: skip
    add("--headers", action="store_true", help="also entries for the headers of the project")
    add("--links", metavar="FILE", type=Path, help="write the link and archive commands to FILE")
    add("--append", action="store_true", help="keep the entries that the output has")
    add("--update", action="store_true",
        help="keep those of files that were not compiled again")  # fmt: skip


def form(args: argparse.Namespace) -> Form:
    """Return how a command line wants entries."""
    from etrace.export.commands.path_style import PathStyle
    from etrace.export.compile_commands import Form

    style = PathStyle(args.paths or STYLES[0])
    return Form(style, args.text, not args.keep_response_files, args.headers)


def merge(args: argparse.Namespace) -> Merge | None:
    """Return what to do with the entries that the output has. UsageError."""
    from etrace.export.commands.merging import Merge

    if not (args.append or args.update):
        return None
    if args.append and args.update:
        raise UsageError("--append and --update are two ways", "give one of them")
    if args.output is None:
        raise UsageError("--append and --update change a file", "name it: -o FILE")
    return Merge.APPEND if args.append else Merge.UPDATE


def tell_missing(image: Image, found: list[Entry], chosen: SourceChoice) -> None:
    """Say why there are no entries, or which compilers are not known."""
    from etrace.export.commands.diagnosis import diagnose

    it = diagnose(image)
    if found:
        tell_unlisted(it, "no entries for")
    elif not chosen.left_out.total():
        _tell_empty(it)


def tell_unlisted(it: Diagnosis, lacks: str) -> None:
    """Say which compilers ran that are not known; `lacks` is what an answer lacks of them."""
    if it.unknown:
        calls = count(it.unknown.total(), "call")
        tell(f"cas: {lacks} {calls} of unknown compilers: {_listed(it.unknown)}\n{HINT}")
    if it.inside:
        files = count(it.inside.total(), "source")
        told = f"{files} compiled inside another program: {_listed(it.inside)}"
        tell(f"cas: {lacks} {told}\n{INSIDE_HINT}")


def _tell_empty(it: Diagnosis) -> None:
    ran = f"{count(it.n_programs, 'program')} ran"
    if it.unknown:
        tell(f"cas: no entries: {ran}; these compiled, but are not known: {_listed(it.unknown)}\n")
        tell(HINT)
    elif it.inside:
        tell(f"cas: no entries: {ran}; these compiled sources inside: {_listed(it.inside)}\n")
        tell(INSIDE_HINT)
    elif not it.n_compilers:
        tell(f"cas: no entries: {ran}, none of them a known compiler: {_listed(it.others)}\n{HINT}")
    else:
        tell(f"cas: no entries: {_compilers(it)}\n")


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
