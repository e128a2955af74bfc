# SPDX-License-Identifier: Apache-2.0
"""A graph of names -> whether one name reaches another, without a set of names for each.

Names that reach each other are one component. A depth-first search numbers the components, what a
component reaches before itself (Tarjan, "Depth-first search and linear graph algorithms", 1972).
The numbers that were given since the search entered it are all reached from it (its tree), and none
below `_least` is (Yildirim, Chaoji and Zaki, "GRAIL", 2010): these two answer most questions. For
the others, the components that one reaches are kept as the bits of an integer, up to MAX_BYTES.
So are those of components on the way, wherever N_WALKED steps were made: thousands of targets may
need one that needs thousands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

#: of all integers that are kept
MAX_BYTES = 256 << 20
#: steps from a component to others whose integers are kept
N_WALKED = 64


def bits_of(numbers: Iterable[int]) -> int:
    """Return numbers as the bits of an integer."""
    own = list(numbers)
    found = bytearray(max(own, default=0) // 8 + 1)
    for number in own:
        found[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(found, "little")


class Reach:
    """Answers for one graph: names -> the names that each leads to."""

    def __init__(self, graph: Mapping[Hashable, Sequence[Hashable]]) -> None:
        self._number: dict[Hashable, int] = {}
        #: by number of component: components that it leads to, where its tree begins, the least
        #: number that it reaches, and the greatest of those that it leads to
        self._next: list[tuple[int, ...]] = []
        self._begin: list[int] = []
        self._least: list[int] = []
        self._greatest: list[int] = []
        #: steps to all that is reached, 0 where the integer is kept, which no walk passes
        self._n_steps: list[int] = []
        self._bits: dict[int, int] = {}
        self._n_bytes = 0
        self._search(graph)

    def __len__(self) -> int:
        """Return the number of components."""
        return len(self._next)

    def number(self, name: Hashable) -> int | None:
        """Return the component of a name; None when the graph has no such name."""
        return self._number.get(name)

    def numbers(self, names: Iterable[Hashable]) -> set[int]:
        """Return the components of those names that the graph has."""
        found = map(self._number.get, names)
        return {number for number in found if number is not None}

    def reaches(self, a: int, b: int) -> bool:
        """Whether a component is another one or reaches it."""
        if a == b or self._begin[a] <= b < a:
            return True
        if not self._least[a] <= b <= self._greatest[a]:
            return False
        return bool(self.bits(a) >> b & 1)

    def bits(self, a: int) -> int:
        """Return a component and all that it reaches, as the bits of an integer."""
        if (known := self._bits.get(a)) is not None:
            return known
        # what a component leads to has lower numbers, and is known when it is looked at
        kept = (each for each in self._unknown(a)[0] if each != a and not self._n_steps[each])
        for each in sorted(kept):
            self._keep(each)
        return self._keep(a)

    def _unknown(self, a: int) -> tuple[set[int], int]:
        """Return what a component reaches up to where integers are known, and these as one."""
        found, seen, todo = 0, {a}, [a]
        while todo:
            for each in self._next[todo.pop()]:
                if each in seen:
                    continue
                if (known := self._bits.get(each)) is not None:
                    if not found >> each & 1:
                        found |= known
                    continue
                seen.add(each)
                todo.append(each)
        return seen, found

    def _keep(self, a: int) -> int:
        seen, found = self._unknown(a)
        found |= bits_of(seen)
        self._n_bytes += a // 8 + 1
        if self._n_bytes > MAX_BYTES:
            self._bits.clear()
            self._n_bytes = a // 8 + 1
        self._bits[a] = found
        return found

    def reaching(self, numbers: Iterable[int]) -> bytearray:
        """Return for each component whether it is one of these or reaches one."""
        found = bytearray(len(self._next))
        for number in numbers:
            found[number] = 1
        for number, following in enumerate(self._next):
            if not found[number] and any(found[each] for each in following):
                found[number] = 1
        return found

    def _search(self, graph: Mapping[Hashable, Sequence[Hashable]]) -> None:
        order: dict[Hashable, int] = {}
        low: dict[Hashable, int] = {}
        open_names: list[Hashable] = []
        for root in graph:
            if root in order:
                continue
            path = [self._enter(root, graph, order, low, open_names)]
            while path:
                name, began, following = path[-1]
                for each in following:
                    if each not in order:
                        path.append(self._enter(each, graph, order, low, open_names))
                        break
                    if each not in self._number:
                        low[name] = min(low[name], order[each])
                else:
                    path.pop()
                    if path:
                        above = path[-1][0]
                        low[above] = min(low[above], low[name])
                    if low[name] == order[name]:
                        self._close(name, began, graph, open_names)

    def _enter(
        self, name: Hashable, graph: Mapping[Hashable, Sequence[Hashable]],
        order: dict[Hashable, int], low: dict[Hashable, int], open_names: list[Hashable],
    ) -> tuple[Hashable, int, Iterator[Hashable]]:  # fmt: skip
        order[name] = low[name] = len(order)
        open_names.append(name)
        return name, len(self._next), iter(graph.get(name, ()))

    def _close(
        self, name: Hashable, began: int, graph: Mapping[Hashable, Sequence[Hashable]],
        open_names: list[Hashable],
    ) -> None:  # fmt: skip
        """Give the next number to a component, whose names are the last open ones."""
        own, members = len(self._next), list[Hashable]()
        while not members or members[-1] != name:
            members.append(open_names.pop())
            self._number[members[-1]] = own
        leads = {self._number[each] for member in members for each in graph.get(member, ())}
        leads.discard(own)
        self._next.append(tuple(leads))
        self._begin.append(began)
        self._least.append(min([began, own, *(self._least[each] for each in leads)]))
        self._greatest.append(max(leads, default=-1))
        n_steps = 1 + sum(1 + self._n_steps[each] for each in leads)
        self._n_steps.append(n_steps if n_steps <= N_WALKED else 0)
