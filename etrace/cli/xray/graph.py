# SPDX-License-Identifier: Apache-2.0
"""`etrace xray graph` and `graph-diff`: which function called which, and what changed."""

from __future__ import annotations

import argparse

from etrace.cli.options.common import add_examples, add_format
from etrace.cli.xray import options
from etrace.xray.graph import LABELS, diff_dot_lines, dot_lines, graph, render_svg

# ---- graph ----


def _add_graph_format(parser: argparse.ArgumentParser) -> None:
    """Add `--format` of graphs."""
    add_format(parser, "dot", "svg", text="svg needs graphviz")


def write(text: str, args: argparse.Namespace) -> None:
    """Write DOT, or the SVG that graphviz makes of it."""
    data = render_svg(text) if args.format == "svg" else text.encode(errors="replace")
    with options.open_output(args) as stream:
        stream.write(data)


def declare_graph(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser)
    options.add_output(parser)
    _add_graph_format(parser)
    for name, default, what in (
        ("--edge-label", "count", "label of calls"),
        ("--node-label", "sum", "label of functions"),
        ("--colour", "sum", "what shades functions"),
    ):
        parser.add_argument(
            name, choices=LABELS, default=default, metavar="FIGURE",
            help=f"{what}: {', '.join(LABELS)} (default: {default})",
        )  # fmt: skip
    parser.add_argument(
        "--deduce",
        action="store_true",
        help="also count calls without an exit: they end with their caller",
    )
    add_examples(
        parser,
        "etrace xray graph -m tool xray-log.tool.1 -o calls.dot",
        "etrace xray graph --format svg -m tool xray-log.tool.1 -o calls.svg",
    )


def run_graph(args: argparse.Namespace) -> int:
    """Write the graph."""
    session = options.make_session(args)
    found = graph(session, deduce=args.deduce)
    lines = dot_lines(found, args.edge_label, args.node_label, args.colour)
    write("\n".join(lines) + "\n", args)
    return options.finish_account(session, found.native)


# ---- graph-diff ----


def declare_graph_diff(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    options.add_session(parser, logs=1)
    parser.add_argument("after", metavar="AFTER", help="the later log")
    parser.add_argument(
        "--after-map", action="append", default=[], metavar="[N=]FILE",
        help="program of the later log, if it is another one",
    )  # fmt: skip
    options.add_output(parser)
    _add_graph_format(parser)
    for name, default, what in (
        ("--edge-label", "count", "label of calls"),
        ("--node-label", "sum", "label of functions"),
    ):
        parser.add_argument(
            name, choices=LABELS[1:], default=default, metavar="FIGURE",
            help=f"{what}: {', '.join(LABELS[1:])} (default: {default})",
        )  # fmt: skip
    parser.add_argument(
        "--deduce",
        action="store_true",
        help="also count calls without an exit: they end with their caller",
    )
    add_examples(
        parser,
        "etrace xray graph-diff -m tool before.log after.log",
        "etrace xray graph-diff --format svg -m tool before.log after.log -o calls.svg",
    )


def run_graph_diff(args: argparse.Namespace) -> int:
    """Write the graph of both."""
    before = options.make_session(args)
    args.maps = args.after_map or args.maps
    after = options.make_session(args, [args.after])
    graphs = graph(before, deduce=args.deduce), graph(after, deduce=args.deduce)
    lines = diff_dot_lines(*graphs, args.edge_label, args.node_label)
    write("\n".join(lines) + "\n", args)
    first = options.finish_account(before, graphs[0].native)
    return max(first, options.finish_account(after, graphs[1].native))
