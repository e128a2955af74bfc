# SPDX-License-Identifier: Apache-2.0
"""The tables `executions` and `children` -> descendants of an execution, and its exit."""

from __future__ import annotations

from collections.abc import Iterator

from libetrace.image.file import Image

from etrace.spec.database import NONE


class ProcessTree:
    """Rows of executions; those of one upid stand together, by index."""

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
        """Tell whether the process of an execution ended with a status other than 0."""
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
        """Return an execution, those after it in its process, and all descendants, by row."""
        found: dict[int, None] = {}
        todo = [row]
        while todo:
            for each in self.rest_of_process(todo.pop()):
                if each in found:
                    break
                found[each] = None
                todo.extend(self.children(each))
        return sorted(found)

    def children(self, row: int) -> list[int]:
        """Return the rows of index 0 of the processes that an execution forked."""
        span = self._child[self._children[row] : self._children[row + 1]].tolist()
        return [child for child in span if 0 <= child < self.n_rows]
