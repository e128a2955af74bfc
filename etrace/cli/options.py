# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """Read an option's number, 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `-o DIR`, for commands that capture."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="where the trace goes (default: here)",
    )
