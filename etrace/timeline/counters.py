# SPDX-License-Identifier: Apache-2.0
"""A database -> how many commands ran, and what they used, over time.

A trace has the sums of each execution. They are spread evenly over its time; memory counts as the
largest resident size for all of its time, so that counter is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.spec.database import NONE
from etrace.timeline.slices import is_leaf, shown_rows

N_POINTS = 2000
NS = 10**9


@dataclass(frozen=True, slots=True)
class Counter:
    """A name, a unit, and values by time in ns; each holds until the next."""

    name: str
    unit: str
    points: list[tuple[int, float]]


def counters(image: Image) -> Iterator[Counter]:
    """Yield commands at once and, where usage was recorded, CPUs, memory and I/O."""
    executions, leaf = image["executions"], is_leaf(image)
    start, elapsed = executions["start_ns"].tolist(), executions["elapsed_ns"].tolist()
    spans = {row: (start[row], start[row] + max(elapsed[row], 1)) for row in shown_rows(image)}
    running = [(*spans[row], 1.0) for row in spans if leaf[row]]
    yield Counter("running commands", "", _sum(running))
    if "usage" not in image.tables:
        return
    usage = {name: column.tolist() for name, column in image["usage"].columns.items()}
    for name, unit, columns, is_rate in (
        ("CPUs in use", "", ("user_ns", "system_ns"), True),
        ("memory, at most", "bytes", ("max_rss_bytes",), False),
        ("read by calls", "bytes/s", ("rchar_bytes",), True),
        ("written by calls", "bytes/s", ("wchar_bytes",), True),
    ):
        per = NS if unit == "bytes/s" else 1
        parts = []
        for row, (begin, end) in spans.items():
            values = [usage[column][row] for column in columns]
            if NONE not in values:
                total = sum(values) * per / (end - begin) if is_rate else float(sum(values))
                parts.append((begin, end, total))
        yield Counter(name, unit, _sum(parts))


def _sum(parts: list[tuple[int, int, float]]) -> list[tuple[int, float]]:
    """Return the sum of values that hold from a begin to an end, at most about N_POINTS times."""
    changes = sorted(
        change for begin, end, value in parts for change in ((begin, value), (end, -value))
    )
    if not changes:
        return []
    step = max((changes[-1][0] - changes[0][0]) // N_POINTS, 1)
    points: list[tuple[int, float]] = []
    total = 0.0
    for time_ns, change in changes:
        total += change
        value = round(max(total, 0.0), 6)
        if points and time_ns - points[-1][0] < step:
            points[-1] = (points[-1][0], value)
        else:
            points.append((time_ns, value))
    return points
