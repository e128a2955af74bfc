# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet compact` and `etrace fleet forget`: what is kept, and how."""

from __future__ import annotations

import argparse

from etrace.cli.ending import say
from etrace.cli.fleet.options import add_fleet, add_range, day, opened, range_of
from etrace.cli.options.common import add_examples, add_quiet
from etrace.errors import UsageError
from etrace.figures import count


def declare_compact(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet compact`."""
    add_fleet(parser)
    parser.add_argument(
        "--by", choices=("day", "month"), default="day",
        help="join the builds of a project and day, or month (default: %(default)s)",
    )  # fmt: skip
    add_range(parser)
    add_quiet(parser)
    add_examples(
        parser, "etrace fleet compact --fleet /srv/fleet",
        "etrace fleet compact --fleet /srv/fleet --by month --until 2026-10-31",
    )  # fmt: skip


def run_compact(args: argparse.Namespace) -> int:
    """Run `etrace fleet compact`."""
    from etrace.fleet.keeping import compact

    n_before, n_after = compact(opened(args), range_of(args), by_month=args.by == "month")
    if not args.quiet:
        say(f"etrace: {count(n_before, 'part')} became {n_after:,}\n")
    return 0


def declare_forget(parser: argparse.ArgumentParser) -> None:
    """Add the options of `etrace fleet forget`."""
    add_fleet(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build-id", metavar="ID", help="remove this build, and never take it again")
    what.add_argument("--before", metavar="DATE", type=day, help="remove the builds before DATE")
    parser.add_argument(
        "--project", metavar="NAME", action="append", default=[],
        help="with --before: only builds of this project; may be repeated",
    )  # fmt: skip
    add_quiet(parser)
    add_examples(
        parser, "etrace fleet forget --fleet /srv/fleet --build-id 4711",
        "etrace fleet forget --fleet /srv/fleet --before 2025-11-27",
    )  # fmt: skip


def run_forget(args: argparse.Namespace) -> int:
    """Run `etrace fleet forget`; 1 when there is no such build."""
    from etrace.fleet.keeping import forget_before, forget_build

    if args.build_id is not None:
        if args.project:
            raise UsageError("--project goes with --before", "a build is named by its id alone")
        n_parts = forget_build(opened(args), args.build_id)
        said = f"build {args.build_id} is forgotten; it was in {count(n_parts, 'part')}"
    else:
        n_parts = forget_before(opened(args), args.before, args.project)
        said = f"{count(n_parts, 'part')} from before {args.before} removed"
    if not args.quiet:
        say(f"etrace: {said}\n")
    return 0
