# SPDX-License-Identifier: Apache-2.0
"""What the commands of `etrace xray` share: logs, maps, filters, where output goes, warnings.

A watch shows on a terminal that work goes on. The native readers count the bytes that they have
read, and a thread looks at the count. Unpacking, names and sorting have no measure.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from etrace.cli.ending import say
from etrace.cli.show.output import opened
from etrace.cli.terminal import PATIENCE_SECONDS, nothing, progress
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Selection, Session, parse_time
from etrace.xray.source import Damage

#: exit status when something in a log could not be used
LOSSY = 2


#: what a log may be
LOG_HELP = "XRay log, .gz and .zst too; - for standard input"


def add_maps(parser: argparse.ArgumentParser) -> None:
    """Add `-m`, and how names are shown."""
    parser.add_argument(
        "-m", "--map", action="append", default=[], metavar="[N=]FILE", dest="maps",
        help="program that wrote the log, for names; N=FILE: shared object number N",
    )  # fmt: skip
    parser.add_argument("--no-demangle", action="store_true", help="show mangled names")


def add_filters(parser: argparse.ArgumentParser, *, of_calls: bool = True) -> None:
    """Add the filters that are before every report; single records have no duration."""
    group = parser.add_argument_group("filters")
    group.add_argument(
        "--function", action="append", default=[], metavar="GLOB", dest="functions",
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
        help="only calls that began after this time in the log, for example 1.5ms",
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
    parser.add_argument("logs", nargs=logs, metavar="LOG", help=LOG_HELP)
    add_maps(parser)
    add_hz(parser)
    parser.add_argument("--strict", action="store_true", help="refuse logs that are not valid")
    add_filters(parser)


def add_hz(parser: argparse.ArgumentParser) -> None:
    """Add `--hz N`."""
    parser.add_argument(
        "--hz",
        metavar="N",
        help="ticks of the clock a second, header (as the log says) or auto (as measured)",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o FILE`."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to FILE (default: standard output)"
    )


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
        say(f"etrace xray: warning: {line}\n")
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
        say(f"etrace xray: note: {shown}\n")
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


# ---- progress ----

LOOK_SECONDS = 0.1


class Watch:
    """A context manager; draws on standard error, nothing where that is not a terminal."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._position: Sequence[int] = (0, 0)
        self._phase = ""
        self._is_reported = False

    def __enter__(self) -> Watch:
        self._draw = self._stack.enter_context(progress(patience_seconds=self._patience_seconds))
        if self._draw is not nothing:
            looker = threading.Thread(target=self._look, daemon=True)
            looker.start()
            self._stack.callback(looker.join)
            self._stack.callback(self._is_over.set)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, position: Sequence[int]) -> None:
        """Show a count that changes: (bytes read, of how many; 0 before it is known)."""
        self._position = position

    def report(self, what: str, done: int, total: int) -> None:
        """Show what is known better than the position says it, from now on."""
        with self._lock:
            self._is_reported = True
            self._change("")
            self._draw(what, done, total)

    def stop(self) -> None:
        """Clear the screen: something else is shown now."""
        self._stack.close()

    def _change(self, phase: str) -> None:
        if self._phase and self._phase != phase:
            self._draw(self._phase, 1, 1)  # it is done with
        self._phase = phase

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            with self._lock:
                if self._is_reported:
                    return
                done, total = self._position
                if total > 0 and done < total:
                    self._change("read")
                    self._draw("read", done, total)
                else:
                    self._change("open" if not total else "work")
                    self._draw(self._phase, 0, None)
