# SPDX-License-Identifier: Apache-2.0
"""An execution -> the command that it belongs to: before its first exec a child is its parent's."""

from __future__ import annotations

from libetrace.image.file import Table

from etrace.spec.database import NONE


def nearest_commands(executions: Table) -> list[int]:
    """Return for each execution the nearest of it and its ancestors that ran a program.

    NONE without one. A damaged database may hold a ring of parents: it has none.
    """
    binary, parent = list(executions["binary"]), list(executions["parent"])
    found = [row if program != NONE else None for row, program in enumerate(binary)]
    for row in range(len(found)):
        passed, at = list[int](), row
        while at != NONE and found[at] is None:
            found[at] = NONE  # what a ring comes to
            passed.append(at)
            at = parent[at]
        end = NONE if at == NONE else found[at]
        for each in passed:
            found[each] = end
    return [NONE if row is None else row for row in found]
