# SPDX-License-Identifier: Apache-2.0
"""The tables `executions` and `children` -> descendants of an execution, and its exit."""

from __future__ import annotations

from collections.abc import Iterator

from libetrace.image.file import Image

from etrace.spec.database import NONE

#: a chain of compilers of any length would be below each of them; launchers, drivers and stages
#: take ten
MAX_LEVELS = 100


class ProcessTree:
    """Rows of executions; those of one upid are together, by index."""

    def __init__(self, image: Image) -> None:
        executions = image["executions"]
        self.n_rows = executions.n_rows
        self.upid = executions["upid"].tolist()
        self.index = executions["index"].tolist()
        self.parent = executions["parent"].tolist()
        self._status = executions["status"]
        self._children = executions["children.start"]
        self._child = image["children"]["execution"]

    def has_failed(self, row: int) -> bool:
        """Return whether the process of an execution ended with a status other than 0."""
        last = row
        while last + 1 < self.n_rows and self.upid[last + 1] == self.upid[row]:
            last += 1
        return self._status[last] not in (0, NONE)

    def first_of_process(self, row: int) -> int:
        """Return the row of index 0, the process before its first exec."""
        return max(0, row - self.index[row])

    def rest_of_process(self, row: int) -> Iterator[int]:
        """Yield an execution and the later ones of its process."""
        upid = self.upid[row]
        while row < self.n_rows and self.upid[row] == upid:
            yield row
            row += 1

    def below(self, row: int) -> list[int]:
        """Return an execution, those after it in its process, and its descendants, by row.

        What lies MAX_LEVELS below is left out, a later execution of a process as one of a child.
        """
        found: dict[int, None] = {}
        level, n_levels = [row], 0
        while level and n_levels < MAX_LEVELS:
            n_levels += 1
            found.update(dict.fromkeys(level))
            after = [next_row for each in level if (next_row := self._next(each)) is not None]
            after += [child for each in level for child in self.children(each)]
            level = [each for each in dict.fromkeys(after) if each not in found]
        return sorted(found)

    def _next(self, row: int) -> int | None:
        after = row + 1
        return after if after < self.n_rows and self.upid[after] == self.upid[row] else None

    def children(self, row: int) -> list[int]:
        """Return the rows of index 0 of the processes that an execution forked."""
        span = self._child[self._children[row] : self._children[row + 1]].tolist()
        return [child for child in span if 0 <= child < self.n_rows]
