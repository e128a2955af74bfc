# SPDX-License-Identifier: Apache-2.0
"""Options that select files by kind, and the message about hidden files."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from etrace.cli.ending import tell
from etrace.query.classes.file_kinds import FileKind

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


def add_kinds(parser: argparse.ArgumentParser, *, with_all: bool = True) -> None:
    """Add `--kind` and, unless the command has one, `--all`."""
    parser.add_argument(
        "--kind", dest="kinds", metavar="KIND[,KIND...]", type=_Kinds(), action="extend",
        default=[], help=f"files of these kinds: {', '.join(FileKind)}",
    )  # fmt: skip
    if with_all:
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
        _tell_hidden(Counter(kind for _, kind in found if kind not in wanted), len(found))
    return [path for path, kind in found if kind in wanted]


def _tell_hidden(hidden: Counter[FileKind], n_files: int) -> None:
    if hidden:
        listed = ", ".join(f"{hidden[kind]:,} {kind}" for kind in FileKind if kind in hidden)
        tell(
            f"cas: {n_files - hidden.total():,} of {n_files:,} files; not shown: {listed}"
            " (--all, --kind)\n"
        )
