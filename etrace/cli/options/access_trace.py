# SPDX-License-Identifier: Apache-2.0
"""The options of `cas export file-access-trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etrace.imports.access_trace.model import VERSIONS, Layout

if TYPE_CHECKING:
    import argparse

#: their attributes
NAMES = ("format_version", "path_blocks", "root")


def add_all(parser: argparse._ArgumentGroup) -> None:
    """Add the options."""
    parser.add_argument(
        "--format-version", type=int, choices=VERSIONS, metavar="N",
        help="version of the format: 1, 2 or 3 (default: that of the imported trace, else 1)",
    )  # fmt: skip
    parser.add_argument(
        "--path-blocks", choices=[each.value for each in Layout],
        help="where version 1 has its paths: in both blocks or all in the first "
        "(default: as the imported trace, else split)",
    )  # fmt: skip
    parser.add_argument(
        "--root", metavar="PROCESS",
        help="only what this process (upid, or its pid) and its descendants did",
    )  # fmt: skip
