# SPDX-License-Identifier: Apache-2.0
"""The closing lines of a capture: counts, the place of the trace, the next command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from etrace.cli.ending import tell
from etrace.cli.show.figures import NS_PER_SECOND, count, size

INTERRUPTED = "the build was interrupted; the trace ends there"


def report(stats: dict[str, Any], trace: str | Path) -> None:
    """Print the counts of a capture and the next command; nothing when they are unknown."""
    if not stats.get("executions") or "duration_ns" not in stats:
        return
    shown = os.path.relpath(trace)
    seconds = stats["duration_ns"] / NS_PER_SECOND
    if stats.get("ended") == "interrupted":
        tell(f"etrace: {INTERRUPTED}\n")
    tell(
        f"etrace: {count(stats['processes'], 'process')}, {count(stats['executions'], 'program')}"
        f" and {count(stats['opens'], 'open')} in {seconds:.1f} s -> {shown}"
        f" ({size(stats['bytes'])})\n"
        f"etrace: next: cas parse {shown}\n"
    )
