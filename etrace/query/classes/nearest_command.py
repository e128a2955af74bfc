# SPDX-License-Identifier: Apache-2.0
"""An execution -> the command that it belongs to: before its first exec a child is its parent's."""

from __future__ import annotations

from libetrace.image.file import Table

from etrace.spec.database import NONE


def nearest_command(executions: Table, row: int) -> int:
    """Return the nearest of an execution and its ancestors that ran a program, NONE without one.

    A damaged database may hold a ring of parents: it has none.
    """
    binary, parent = executions["binary"], executions["parent"]
    seen: set[int] = set()
    while row != NONE and binary[row] == NONE:
        if row in seen:
            return NONE
        seen.add(row)
        row = parent[row]
    return row
