# SPDX-License-Identifier: Apache-2.0
"""Files that processes opened, with all that they started if asked."""

from __future__ import annotations

from collections.abc import Iterable

from libetrace.image.file import Image

from etrace.query.given import chosen
from etrace.query.given.chosen import Given
from etrace.spec.database import NONE


def descendants(image: Image, rows: Iterable[int]) -> list[int]:
    """Return executions and everything that they started, ascending.

    What an execution forked belongs to it with every later execution of the forked process.
    """
    executions, child = image["executions"], image["children"]["execution"]
    upid = executions["upid"]
    seen: set[int] = set()
    queue = list(rows)
    while queue:
        row = queue.pop()
        if row in seen:
            continue
        seen.add(row)
        for i in executions.span("children.start", row):
            first = child[i]
            while first != NONE and first < len(upid) and upid[first] == upid[child[i]]:
                queue.append(first)
                first += 1
    return sorted(seen)


def procref(image: Image, given: Given, *, with_children: bool = False) -> list[int]:
    """Return the rows of `opens` of the chosen executions, in their order."""
    if not with_children:
        return list(chosen.opens(image, given))
    rows = descendants(image, chosen.executions(image, given.of_executions()))
    keys = image["executions"]
    pids = tuple(b"%d:%d" % (keys["upid"][row], keys["index"][row]) for row in rows)
    return list(chosen.opens(image, given.of_files()._replace(pids=pids)))
