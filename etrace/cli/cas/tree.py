# SPDX-License-Identifier: Apache-2.0
"""`cas tree`: the process tree."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.options.common import positive
from etrace.cli.show.answer import Answer, Style
from etrace.cli.show.shapes import Executions
from etrace.query.tree import Node, tree

#: deeper nodes tell their depth: a chain of processes would be as wide as it is long
MAX_INDENTED = 64


def _indent(depth: int) -> bytes:
    if depth <= MAX_INDENTED:
        return b"  " * depth
    return b"  " * MAX_INDENTED + b"(%d) " % depth


class _Nodes:
    """Entries are nodes; plain ones are indented by their depth."""

    feeds = Executions.feeds

    def __init__(self, image: Image) -> None:
        self._executions = Executions(image)

    def plain(self, item: Node, style: Style) -> bytes:
        """Return the command, indented."""
        command = self._executions.plain(item.execution, style)
        return _indent(item.depth) + (command or b"(no command)")

    def details(self, item: Node, style: Style) -> bytes:
        """Return all that is known of the execution, indented."""
        return _indent(item.depth) + self._executions.details(item.execution, style)

    def entry(self, item: Node, style: Style) -> Mapping[str, Any]:
        """Return the execution with its depth."""
        return {"depth": item.depth, **self._executions.record(item.execution, style)}

    record = entry

    def feed(self, item: Node, option: str) -> bytes:
        """Return the execution, or its program."""
        return self._executions.feed(item.execution, option)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas tree`."""
    selecting.add_all(parser)
    parser.add_argument("--levels", type=positive, metavar="N", help="at most N levels")


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with the tree below the chosen executions, or all of it."""
    return Answer(_Nodes(image), tree(image, selecting.given(args), n_levels=args.levels))
