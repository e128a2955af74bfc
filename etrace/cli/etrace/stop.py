# SPDX-License-Identifier: Apache-2.0
"""`sudo etrace stop`: end the session of `etrace start` and write its trace."""

from __future__ import annotations

import argparse
import os

from etrace.capture.kmod.sessions import host, teardown
from etrace.capture.kmod.sessions.ending import Ending
from etrace.capture.session import told_aside
from etrace.cli.ending import tell
from etrace.cli.etrace.captured import report
from etrace.cli.show.figures import count

EXIT_LOST = 2
EPILOG = """\
It first writes everything that was recorded. Then it removes the ftrace instance, and unloads the
module if `etrace start` loaded it. A session that died (its collector was killed) is cleaned up in
the same way, and its trace is kept.

exit status: 0 the trace is complete; 2 events are lost, as reported (or wrong usage); 1 no session
is running; 125 the session could not be stopped. When it is interrupted, run it again.
"""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace stop`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("-q", "--quiet", action="store_true", help="print no summary")


def tell_losses(ending: Ending) -> None:
    """Report every loss with its count and reason."""
    for loss in ending.losses:
        least = "at least " if loss.at_least else ""
        tell(f"etrace: {least}{count(loss.n, 'event')} lost: {loss.reason}\n")
    if ending.losses:
        shown = os.path.relpath(ending.trace)
        tell(f"etrace: {shown} is incomplete: {count(ending.lost, 'event')} lost in all\n")
        tell(f"  hint: {ending.hint}\n")


def run(args: argparse.Namespace) -> int:
    """Run `etrace stop`."""
    ending = teardown.end(host.real(), lambda text: tell(f"etrace: {text}\n"))
    if ending.aside and not args.quiet:
        tell(f"etrace: {told_aside(ending.trace.name)}\n")
    if not ending.published:
        tell("etrace: nothing was traced, so no trace was written\n")
    for warning in ending.warnings:
        tell(f"etrace: {warning}\n")
    if not args.quiet:
        report(ending.stats, ending.trace)
    tell_losses(ending)
    return EXIT_LOST if ending.lost else 0
