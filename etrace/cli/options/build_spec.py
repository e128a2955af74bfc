# SPDX-License-Identifier: Apache-2.0
"""Options of the build spec: which programs are in it, and in which form."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from etrace.cli.ending import say
from etrace.figures import count

if TYPE_CHECKING:
    from etrace.export.build_spec import KnownPrograms, Written

#: programs that a message lists at most
N_LISTED = 12
NAMES = ("debug", "compilers", "also", "expand")


def names(text: str) -> list[str]:
    """Read a comma-separated list."""
    return [name for name in text.split(",") if name]


def add_form(parser: argparse._ActionsContainer, *letters: str) -> None:
    """Add `--debug` and `--compilers`, with the letters of unix-tracer where they are given."""
    debug, compilers = ([letter] for letter in letters) if letters else ([], [])
    add = parser.add_argument
    add(*debug, "--debug", action="store_true",
        help="every call, with pid, ppid, function and isKnown")  # fmt: skip
    add(*compilers, "--compilers", metavar="LIST", type=names,
        help="names or globs, separated by commas, instead of the usual programs")  # fmt: skip


def add_all(parser: argparse._ActionsContainer) -> None:
    """Add the options of `cas export build-spec`."""
    add_form(parser)
    parser.add_argument("--also", metavar="LIST", type=names, help="more names or globs")
    parser.add_argument(
        "--expand", action="store_true",
        help="put the content of response files into `arguments` instead of `respfile`",
    )  # fmt: skip


def listed(args: argparse.Namespace) -> list[str]:
    """Return the names of the known programs of a command line."""
    from etrace.export.build_spec import KNOWN

    own = list(KNOWN) if args.compilers is None else args.compilers
    return [*own, *(getattr(args, "also", None) or ())]


def known(args: argparse.Namespace) -> KnownPrograms:
    """Return the known programs of a command line."""
    from etrace.export.build_spec import KnownPrograms

    if args.compilers is None:
        return KnownPrograms(listed(args))
    return KnownPrograms(listed(args), on_windows=())


def report_empty(program: str, written: Written) -> None:
    """Say why a build spec is empty, with the programs that ran instead."""
    if written.n_items:
        return
    n_calls = written.others.total()
    if not n_calls:
        say(f"{program}: the build spec is empty: no program ran\n")
        return
    say(
        f"{program}: the build spec is empty: none of {count(n_calls, 'call')} is of a known"
        f" program; these ran: {_shown(written.others)}\n"
        "  hint: --compilers LIST names the programs that you want; --debug writes all\n"
    )


def _shown(others: Counter[str]) -> str:
    shown = [f"{name or '(no name)'} ({n})" for name, n in others.most_common(N_LISTED)]
    n_more = len(others) - len(shown)
    return ", ".join([*shown, f"and {n_more} more"] if n_more else shown)
