# SPDX-License-Identifier: Apache-2.0
"""What the commands of `etrace xray` share: logs, maps, filters, where output goes, warnings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from etrace.cli.ending import tell
from etrace.cli.show.output import opened
from etrace.xray.names import Names, read_maps
from etrace.xray.selection import Selection, parse_time
from etrace.xray.session import Session
from etrace.xray.warnings import Damage

#: exit status when something in a log could not be used
LOSSY = 2


def add_maps(parser: argparse.ArgumentParser) -> None:
    """Add `-m`, and how names are shown."""
    parser.add_argument(
        "-m", "--map", action="append", default=[], metavar="[N=]FILE", dest="maps",
        help="program that wrote the log, for names; N=FILE: shared object number N",
    )  # fmt: skip
    parser.add_argument("--no-demangle", action="store_true", help="mangled names")


def add_filters(parser: argparse.ArgumentParser, *, of_calls: bool = True) -> None:
    """Add the filters that stand before every report; single records have no duration."""
    group = parser.add_argument_group("filters")
    group.add_argument(
        "-f", "--function", action="append", default=[], metavar="GLOB", dest="functions",
        help="only functions whose name matches, or #ID; what they call counts as their own time",
    )  # fmt: skip
    group.add_argument(
        "-t", "--thread", action="append", default=[], type=int, metavar="TID", dest="threads",
        help="only this thread",
    )  # fmt: skip
    group.add_argument(
        "--from",
        dest="from_time",
        metavar="TIME",
        default="0",
        help="only calls that began after this time in the log: 1.5ms",
    )
    group.add_argument(
        "--until", dest="until_time", metavar="TIME", help="only calls that began before this time"
    )
    if of_calls:
        group.add_argument(
            "--min-duration",
            metavar="TIME",
            default="0",
            help="only calls that took at least this long",
        )


def add_session(parser: argparse.ArgumentParser, *, logs: str | int = "+") -> None:
    """Add logs, maps, filters and how damage is taken."""
    parser.add_argument("logs", nargs=logs, metavar="LOG", help="XRay log, also .gz and .zst; -")
    add_maps(parser)
    add_hz(parser)
    parser.add_argument("--strict", action="store_true", help="refuse logs that are not valid")
    add_filters(parser)


def add_hz(parser: argparse.ArgumentParser) -> None:
    """Add `--hz N`."""
    parser.add_argument(
        "--hz", metavar="N", help="rate of the counter: ticks a second, header or auto (measured)"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o FILE`."""
    parser.add_argument("-o", "--output", metavar="FILE", help="write there (default: here)")


def make_selection(args: argparse.Namespace) -> Selection:
    """Return what the options of `add_filters` choose."""
    return Selection(
        args.functions,
        args.threads,
        parse_time(args.from_time),
        None if args.until_time is None else parse_time(args.until_time),
        parse_time(getattr(args, "min_duration", "0")),
    )


def make_session(args: argparse.Namespace, logs: Sequence[str] | None = None) -> Session:
    """Return what the options ask for; with --strict the logs are verified."""
    names = Names(read_maps(args.maps), not args.no_demangle)
    paths = args.logs if logs is None else logs
    session = Session(paths, names, make_selection(args), args.hz)
    args.watch.follow(session.position)
    if args.strict:
        session.verify()
    return session


def finish(
    session: Session, damages: Sequence[Damage], functions: Collection[int], kinds: Collection[int]
) -> int:
    """Print the warnings and return the exit status."""
    for line in session.warnings(damages, functions, kinds):
        tell(f"etrace xray: warning: {line}\n")
    return LOSSY if any(damage.is_lossy for damage in damages) else 0


def finish_account(session: Session, native: Any) -> int:
    """Do so after an account, and say which calls were not whole."""
    status = finish(session, session.damages(native.logs), native.functions, native.kinds)
    notes = (
        (
            native.n_unmatched_exits,
            "exit of a call",
            "exits of calls",
            " begun before the log",
        ),
        (native.n_deduced, "call", "calls", " without their own exit"),
        (native.n_unfinished, "call", "calls", " not ended"),
        (native.n_backwards, "call", "calls", " whose time went backwards, counted as 0"),
    )
    shown = ", ".join(f"{n} {one if n == 1 else more}{what}" for n, one, more, what in notes if n)
    if shown:
        tell(f"etrace xray: note: {shown}\n")
    return status


def is_shown(args: argparse.Namespace) -> bool:
    """Say whether the output goes to a terminal."""
    return args.output in (None, "-") and sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def open_output(args: argparse.Namespace) -> Iterator[BinaryIO]:
    """Open what `-o` names; `-` and nothing are standard output, which the watch makes room for."""
    if is_shown(args):
        args.watch.stop()
    with opened(None if args.output in (None, "-") else Path(args.output)) as stream:
        yield stream
    args.watch.stop()  # warnings come next
