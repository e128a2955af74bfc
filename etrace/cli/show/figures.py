# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

from __future__ import annotations

from etrace.figures import count

__all__ = ["NS_PER_SECOND", "count", "seconds", "size"]

NS_PER_SECOND = 1_000_000_000
STEP = 1000
UNITS = ("B", "kB", "MB", "GB", "TB")


def size(n_bytes: int) -> str:
    """Return a size in powers of 1000: `12 B`, `1.5 MB`."""
    value, unit = float(n_bytes), 0
    while value >= STEP and unit < len(UNITS) - 1:
        value, unit = value / STEP, unit + 1
    return f"{value:.1f} {UNITS[unit]}" if unit else f"{n_bytes} B"


def seconds(n_ns: int) -> str:
    """Return a duration in seconds with three digits after the point."""
    return f"{n_ns / NS_PER_SECOND:.3f} s"
