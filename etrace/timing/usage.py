# SPDX-License-Identifier: Apache-2.0
"""A database -> the CPU time of its executions, where the capture recorded it, and what slept."""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.spec.database import NONE


def cpu_times(image: Image) -> list[int] | None:
    """Return user and system time of each execution in ns, NONE where unknown; None without any."""
    if "usage" not in image.tables:
        return None
    usage = image["usage"]
    times = zip(usage["user_ns"], usage["system_ns"], strict=True)
    return [NONE if NONE in pair else sum(pair) for pair in times]


def sleepers(image: Image) -> list[bool]:
    """Return for each execution whether it gave up its CPU more often than it was taken off it."""
    if "usage" not in image.tables:
        return [False] * image["executions"].n_rows
    usage = image["usage"]
    switches = zip(usage["n_voluntary_switches"], usage["n_forced_switches"], strict=True)
    return [voluntary > forced for voluntary, forced in switches]


def never_slept(image: Image) -> list[bool]:
    """Return for each execution whether it was taken off its CPU and never gave it up."""
    if "usage" not in image.tables:
        return [False] * image["executions"].n_rows
    usage = image["usage"]
    switches = zip(usage["n_voluntary_switches"], usage["n_forced_switches"], strict=True)
    return [voluntary == 0 < forced for voluntary, forced in switches]
