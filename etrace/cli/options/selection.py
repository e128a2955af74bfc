# SPDX-License-Identifier: Apache-2.0
"""Options that say what a query is about, and which kinds of files it shows."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from libetrace.image.file import Image

from etrace.cli.ending import say
from etrace.cli.options.common import add_binaries, add_paths, add_pids
from etrace.query.rows.file_kinds import FileKind
from etrace.query.select.filters import parse_executions, parse_opens
from etrace.query.select.selection import Selection, passing_paths

FILTER_HELP = "files that match TEXT: [path=*.h,type=wc]and[access=r]; see docs/queries.md"
COMMAND_HELP = "commands that match TEXT: [bin=/gcc]or[cmd= -c ]; see docs/queries.md"


def add_filter(parser: argparse._ActionsContainer) -> None:
    """Add `--filter`."""
    parser.add_argument(
        "-f", "--filter", dest="filters", metavar="TEXT", action="append", default=[],
        help=FILTER_HELP,
    )  # fmt: skip


def add_command_filter(parser: argparse.ArgumentParser) -> None:
    """Add `--command-filter`."""
    parser.add_argument(
        "--command-filter", dest="command_filters", metavar="TEXT", action="append", default=[],
        help=COMMAND_HELP,
    )  # fmt: skip


def add_all(parser: argparse.ArgumentParser, *, files: bool = False) -> None:
    """Add all of them; with `files` also FILE..., the same as `--path`."""
    add_paths(parser, positional=files)
    add_binaries(parser)
    add_pids(parser)
    add_filter(parser)
    add_command_filter(parser)


def selection_of(args: argparse.Namespace) -> Selection:
    """Return what the command line is about; FilterError for a filter that cannot be read."""
    return Selection(
        getattr(args, "path", None),
        getattr(args, "binary", None),
        getattr(args, "pid", None),
        parse_opens(getattr(args, "filters", ())),
        parse_executions(getattr(args, "command_filters", ())),
        is_exact=not args.fed,
    )


def kept(image: Image, args: argparse.Namespace, paths: Sequence[int]) -> list[int]:
    """Return those rows of `paths` for which `--filter` holds."""
    return passing_paths(image, parse_opens(args.filters), paths)


# ---- kinds of files ----

#: row of `paths` -> its kind
KindOf: TypeAlias = Callable[[int], FileKind]


class _Kinds:
    """The type of `--kind`: words between commas; `words` is what shells complete."""

    words = tuple(kind.value for kind in FileKind)

    def __call__(self, text: str) -> list[FileKind]:
        for word in text.split(","):
            if word not in self.words:
                listed = ", ".join(self.words)
                raise argparse.ArgumentTypeError(f"no kind {word!r}: there are {listed}")
        return [FileKind(word) for word in text.split(",")]


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Add `--kind` and `--all`."""
    parser.add_argument(
        "--kind", dest="kinds", metavar="KIND[,KIND...]", type=_Kinds(), action="extend",
        default=[], help=f"files of these kinds: {', '.join(FileKind)}",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="files of every kind")


def view(
    kind_of: KindOf, args: argparse.Namespace, usual: Collection[FileKind]
) -> Callable[[int], bool] | None:
    """Return the test of rows of `paths` that the options ask for; None when all are shown."""
    if args.all and not args.kinds:
        return None
    wanted = args.kinds or usual
    return lambda path: kind_of(path) in wanted


def shown(
    kind_of: KindOf, args: argparse.Namespace, paths: Iterable[int], usual: Collection[FileKind]
) -> list[int]:
    """Return those rows of `paths` that the options show, `usual` ones without any.

    Without such options it reports on standard error how many files of which kinds are hidden.
    """
    if args.all and not args.kinds:
        return list(paths)
    wanted = args.kinds or usual
    found = [(path, kind_of(path)) for path in paths]
    if not args.kinds:
        _report_hidden(Counter(kind for _, kind in found if kind not in wanted), len(found))
    return [path for path, kind in found if kind in wanted]


def _report_hidden(hidden: Counter[FileKind], n_files: int) -> None:
    if hidden:
        listed = ", ".join(f"{hidden[kind]:,} {kind}" for kind in FileKind if kind in hidden)
        say(
            f"cas: {n_files - hidden.total():,} of {n_files:,} files; not shown: {listed}"
            " (--all, --kind)\n"
        )
