# SPDX-License-Identifier: Apache-2.0
"""Options that several commands of `etrace fleet` have."""

from __future__ import annotations

import argparse
import datetime
import os
from typing import TYPE_CHECKING

from etrace.errors import UsageError

if TYPE_CHECKING:
    from etrace.fleet.dataset import Dataset, Range

VARIABLE = "ETRACE_FLEET"


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """Add `--fleet`."""
    parser.add_argument(
        "--fleet", metavar="DIR",
        help=f"directory of the fleet, or s3://BUCKET/PATH (default: ${VARIABLE})",
    )  # fmt: skip


def place_of(args: argparse.Namespace) -> str:
    """Return where the fleet is. UsageError."""
    place = args.fleet or os.environ.get(VARIABLE, "")
    if not place:
        raise UsageError("which fleet?", f"give --fleet DIR, or set {VARIABLE}")
    return str(place)


def opened(args: argparse.Namespace) -> Dataset:
    """Open the fleet."""
    from etrace.fleet.dataset import open_dataset

    return open_dataset(place_of(args))


def day(text: str) -> str:
    """Read a date."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: not a date such as 2026-11-27") from error


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add what chooses builds: other parts of the fleet are not read at all."""
    parser.add_argument(
        "--project", metavar="NAME", action="append", default=[],
        help="only builds of this project; may be repeated",
    )  # fmt: skip
    parser.add_argument("--since", metavar="DATE", type=day, help="only builds from DATE on")
    parser.add_argument(
        "--until", metavar="DATE", type=day, help="only builds up to DATE, included"
    )


def range_of(args: argparse.Namespace) -> Range:
    """Return which builds are read."""
    from etrace.fleet.dataset import Range

    return Range(tuple(args.project), args.since or "", args.until or "")


def add_master(parser: argparse.ArgumentParser) -> None:
    """Add `--master`."""
    parser.add_argument(
        "--master", metavar="URL", default="local[*]",
        help="with --engine spark: its cluster (default: %(default)s)",
    )  # fmt: skip
