# SPDX-License-Identifier: Apache-2.0
"""Options that say what a query is about: `--path`, `--binary`, `--pid` and the two filters."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from libetrace.image.file import Image

from etrace.cli.options.common import add_binaries, add_paths, add_pids
from etrace.query.given.chosen import Given, paths_that_hold
from etrace.query.given.filters import parse_executions, parse_opens

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


def given(args: argparse.Namespace) -> Given:
    """Return what the command line is about; FilterError for a filter that cannot be read."""
    return Given(
        getattr(args, "path", None),
        getattr(args, "binary", None),
        getattr(args, "pid", None),
        parse_opens(getattr(args, "filters", ())),
        parse_executions(getattr(args, "command_filters", ())),
        is_exact=not args.fed,
    )


def kept(image: Image, args: argparse.Namespace, paths: Sequence[int]) -> list[int]:
    """Return those rows of `paths` for which `--filter` holds."""
    return paths_that_hold(image, parse_opens(args.filters), paths)
