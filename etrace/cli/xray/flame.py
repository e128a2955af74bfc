# SPDX-License-Identifier: Apache-2.0
"""`etrace xray flame`: a flame graph in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from etrace.cli.xray import options
from etrace.xray.flame import render
from etrace.xray.stacks import stacks


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    parser.add_argument("--title", help="(default: the names of the logs)")
    parser.add_argument(
        "-d", "--deduce", action="store_true",
        help="count calls that lost their exit: they end with their caller",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    session = options.make_session(args)
    found = stacks(session, deduce=args.deduce)
    title = args.title or ", ".join(Path(path).name for path in args.logs)
    with options.open_output(args) as stream:
        stream.write(render(session, found, title).encode(errors="replace"))
    return options.finish_account(session, found.native)
