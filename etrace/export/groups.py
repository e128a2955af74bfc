# SPDX-License-Identifier: Apache-2.0
"""Numbers of commands -> those that must run as one: sets that grow, and circles of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class Groups:
    """Disjoint sets of numbers."""

    def __init__(self, n: int) -> None:
        self._above = list(range(n))

    def find(self, number: int) -> int:
        """Return the number that stands for its set."""
        while self._above[number] != number:
            self._above[number] = self._above[self._above[number]]
            number = self._above[number]
        return number

    def join(self, numbers: Iterable[int]) -> None:
        """Make one set of the sets of some numbers; the least number stands for it."""
        found = sorted({self.find(number) for number in numbers})
        for number in found[1:]:
            self._above[number] = found[0]


def strong_components(needs: Mapping[int, Iterable[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph, by Tarjan's algorithm."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in list(needs):
        if root in index:
            continue
        todo = [(root, iter(needs.get(root, ())))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while todo:
            node, rest = todo[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    path.append(after)
                    on_path.add(after)
                    todo.append((after, iter(needs.get(after, ()))))
                    break
                if after in on_path:
                    low[node] = min(low[node], index[after])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
                if low[node] == index[node]:
                    component = list[int]()
                    while not component or component[-1] != node:
                        component.append(path.pop())
                        on_path.discard(component[-1])
                    yield component
