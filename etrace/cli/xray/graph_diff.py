# SPDX-License-Identifier: Apache-2.0
"""`etrace xray graph-diff`: what changed between the call graphs of two logs, by function name."""

from __future__ import annotations

import argparse

from etrace.cli.xray import options
from etrace.cli.xray.graph import add_format, write
from etrace.xray.graph import LABELS, diff_dot_lines, graph


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser, logs=1)
    parser.add_argument("after", metavar="AFTER", help="the later log")
    parser.add_argument(
        "--after-map", action="append", default=[], metavar="[N=]FILE",
        help="program of the later log, when it is another one",
    )  # fmt: skip
    options.add_output(parser)
    add_format(parser)
    for flag, name, default in (("-e", "--edge-label", "count"), ("-n", "--node-label", "sum")):
        parser.add_argument(
            flag, name, choices=LABELS[1:], default=default, metavar="FIGURE",
            help=f"{', '.join(LABELS[1:])} (default: {default})",
        )  # fmt: skip
    parser.add_argument("-d", "--deduce", action="store_true", help="count calls without an exit")


def run(args: argparse.Namespace) -> int:
    """Write the graph of both."""
    before = options.make_session(args)
    args.maps = args.after_map or args.maps
    after = options.make_session(args, [args.after])
    graphs = graph(before, deduce=args.deduce), graph(after, deduce=args.deduce)
    lines = diff_dot_lines(*graphs, args.edge_label, args.node_label)
    write("\n".join(lines) + "\n", args)
    first = options.finish_account(before, graphs[0].native)
    return max(first, options.finish_account(after, graphs[1].native))
