# SPDX-License-Identifier: Apache-2.0
"""`etrace xray graph`: which function called which."""

from __future__ import annotations

import argparse

from etrace.cli.xray import options
from etrace.xray.graph import LABELS, dot_lines, graph, render_svg


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add `--format` of graphs."""
    parser.add_argument(
        "--format", choices=("dot", "svg"), default="dot", help="svg needs graphviz (default: dot)"
    )


def write(text: str, args: argparse.Namespace) -> None:
    """Write DOT, or the SVG that graphviz makes of it."""
    data = render_svg(text) if args.format == "svg" else text.encode(errors="replace")
    with options.open_output(args) as stream:
        stream.write(data)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    add_format(parser)
    for flag, name, default, what in (
        ("-e", "--edge-label", "count", "at the calls"),
        ("-n", "--node-label", "sum", "at the functions"),
        ("-c", "--colour", "sum", "that shades the functions"),
    ):
        parser.add_argument(
            flag, name, choices=LABELS, default=default, metavar="FIGURE",
            help=f"figure {what}: {', '.join(LABELS)} (default: {default})",
        )  # fmt: skip
    parser.add_argument("-d", "--deduce", action="store_true", help="count calls without an exit")


def run(args: argparse.Namespace) -> int:
    """Write the graph."""
    session = options.make_session(args)
    found = graph(session, deduce=args.deduce)
    lines = dot_lines(found, args.edge_label, args.node_label, args.colour)
    write("\n".join(lines) + "\n", args)
    return options.finish_account(session, found.native)
