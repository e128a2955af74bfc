# SPDX-License-Identifier: Apache-2.0
"""`etrace top`: the programs of a build that is being traced, as a tree.

`running` makes processes of the growing trace, `rows` text of those, `screen` draws it. The build
does not know that somebody looks.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from etrace.cli.opening import found_above
from etrace.cli.options.common import add_examples
from etrace.cli.top import rows
from etrace.cli.top.running import Follower, Running, find
from etrace.errors import UsageError

EPILOG = """\
keys: q leaves and the build goes on; f shows the programs that failed; / searches, Esc ends that;
arrows and page keys scroll.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace top`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        type=Path,
        help="where a trace is being written (default: here, or the nearest directory above)",
    )
    parser.add_argument("--once", action="store_true", help="print what runs now, and exit")
    add_examples(parser, "etrace top", "etrace top --once ~/project")


def run(args: argparse.Namespace) -> int:
    """Show it until the user leaves."""
    trace = find(args.directory or found_above() or Path())
    follower = Follower(trace)
    try:
        if args.once:
            _print(follower)
            return 0
        if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
            raise UsageError("etrace top needs a terminal", "--once prints what runs now")
        if os.environ.get("TERM", "dumb") in ("", "dumb"):
            raise UsageError("this terminal cannot move its cursor", "--once prints what runs now")
        from etrace.cli.top.screen import show

        show(trace, follower)
    except KeyboardInterrupt:
        return 0
    finally:
        follower.close()
    return 0


def _print(follower: Follower) -> None:
    running = Running()
    running.read(follower.lines())
    shown = rows.processes(running, {}, "")
    for row in rows.fitted([*rows.head(running, 0, True), *shown], 1 << 16):
        print(row.text)
