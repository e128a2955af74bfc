# SPDX-License-Identifier: Apache-2.0
"""The parts of the page, from top to bottom.

Each has a script in `web/parts/`, which calls `addPart` (`web/parts.js`), and, where it shows more
than columns of commands and files, a function that adds its data to the pack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from etrace.report.advice import add_findings
from etrace.report.failures import add_failures
from etrace.report.pack import Pack
from etrace.report.phases import add_phases
from etrace.report.products import add_headers, add_modules
from etrace.report.roles import add_roles
from etrace.report.uses import Contents


@dataclass(frozen=True, slots=True)
class Part:
    """One part; a script may make several, and is named by each."""

    script: str
    add: Callable[[Pack, Contents], None] | None = None


PARTS = (
    Part("failures", add_failures),
    Part("advice", add_findings),
    Part("timeline"),
    Part("phases", add_phases),
    Part("path"),
    Part("flame"),
    Part("commands", add_roles),
    Part("products", add_modules),
    Part("products", add_headers),
    Part("neighbours"),
)
