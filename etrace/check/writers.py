# SPDX-License-Identifier: Apache-2.0
"""The recipes that write one file -> which of them matter to another recipe, without all pairs.

Two recipes meet in the innermost make that both belong to: there, each is or belongs to another
recipe of that make. A file such as a log may have thousands of writers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from etrace.rules.reach import bits_of
from etrace.rules.recipes import Recipe, Recipes, Use
from etrace.rules.rule import Rules
from etrace.spec.database import NONE

#: so many writers that a recipe needs are looked at one by one; of more, the first ones decide
N_NEEDED = 64
#: earlier recipes that wait for a later one: more contradict the trace, and nothing is said then
N_CONTRARY = 64
#: recipes that are looked at together, where one waits for all of them
N_BLOCK = 64
#: the first entry that is not of a recipe itself is one of these
N_FIRST = 2
T = TypeVar("T")


@dataclass(slots=True)
class _Meeting:
    """The recipes of one make that are or have writers, in order of time: number -> first use."""

    rules: Rules | None
    first: dict[int, Use] = field(default_factory=dict)
    #: place of the last writer that a recipe is or has, in the order of writers
    last: dict[int, int] = field(default_factory=dict)
    by_target: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: by the identity of their targets, which many lines of a makefile may share
    n_alike: Counter[int] = field(default_factory=Counter)
    #: of those that are ordered by something else than what targets need: why -> recipes
    odd: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: by component of the graph, and all components as bits
    by_component: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bits: int = 0
    #: number of a recipe -> the first one that it does not wait for, NONE for none
    unordered: dict[int, int] | None = None


class Writers:
    """The recipes that write one file."""

    def __init__(
        self,
        recipes: Recipes,
        rules: Mapping[int, Rules],
        text: str,
        uses: Iterable[Use],
        targets: Mapping[int, frozenset[str]] | None = None,
    ) -> None:
        """Take the uses that write a file, in order of time.

        `targets` are those of recipes that have none of their own, as far as they are known.
        """
        self._recipes, self._rules, self._text = recipes, rules, text
        self._more = targets or {}
        self._targets: dict[int, frozenset[str]] = {}
        self.first: dict[int, Use] = {}
        for use in uses:
            self.first.setdefault(use.recipe, use)
        #: recipe -> the makes below it that have writers, and NONE when it is one -> first use
        self._parts: dict[int, dict[int, Use]] = defaultdict(dict)
        self._meetings: dict[int, _Meeting] = {}
        #: of writers by their recipe
        self._places: dict[int, int] = {}

    def targets(self, number: int) -> frozenset[str]:
        """Return what a recipe is for."""
        if number not in self._targets:  # kept, for sets are compared by identity
            own = self._recipes.recipes[number].possible
            self._targets[number] = own or self._more.get(number, frozenset())
        return self._targets[number]

    def _prepare(self) -> None:
        """Find where writers meet others: seldom needed, as most files have one writer."""
        if self._places:
            return
        for place, use in enumerate(self.first.values()):
            self._places[use.recipe] = place
            inner = NONE
            for number in self._recipes.chain(use.recipe):
                self._parts[number].setdefault(inner, use)
                inner = self._recipes.recipes[number].make
                if inner not in self._meetings:
                    self._meetings[inner] = _Meeting(self._rules.get(inner))
                self._add(self._meetings[inner], number, use)
                self._meetings[inner].last[number] = place
            self._parts[NONE].setdefault(inner, use)
        for meeting in self._meetings.values():
            meeting.bits = bits_of(meeting.by_component)

    def _add(self, meeting: _Meeting, number: int, use: Use) -> None:
        if number in meeting.first:
            return
        meeting.first[number] = use
        targets, rules = self.targets(number), meeting.rules
        if rules is None:
            return
        meeting.n_alike[id(targets)] += 1
        if meeting.n_alike[id(targets)] > N_FIRST:
            return
        if not targets:
            meeting.odd["no known targets"].append(number)
        elif not targets.isdisjoint(rules.makefiles):
            meeting.odd["it writes a makefile"].append(number)
        elif not targets.isdisjoint(rules.before_all):
            meeting.odd["a makefile needs it"].append(number)
        for target in targets:
            meeting.by_target[target].append(number)
        for component in rules.graph(order_only=True).numbers(targets):
            meeting.by_component[component].append(number)

    def that_matter(self, number: int) -> Iterable[Use]:
        """Return the writers for which a recipe may wait, or that no -j runs beside it, by time.

        All others are surely ones that it does not wait for.
        """
        if len(self.first) <= N_FIRST:
            return self.first.values()
        self._prepare()
        found, inner = list[Use](), NONE
        for each in (*self._recipes.chain(number), NONE):
            parts = self._parts.get(each, {})
            found += _first(use for part, use in parts.items() if part != inner or part == NONE)
            if each == NONE:
                break
            recipe = self._recipes.recipes[each]
            inner = recipe.make
            if (met := self._meetings.get(inner)) is None:
                continue
            others = self._that_matter_to(each, recipe, met)
            if others is None:
                return self.first.values()
            found += (met.first[other] for other in others if other != each)
        return sorted(set(found), key=lambda use: use.begin_ns)

    def _that_matter_to(self, number: int, recipe: Recipe, met: _Meeting) -> Iterable[int] | None:
        if len(met.first) <= N_FIRST:
            return met.first
        rules = met.rules
        if rules is None or rules.is_serial or not recipe.targets:
            return _first(met.first)
        if rules.needs(recipe.targets, [self._text], order_only=True):
            return _first(met.first)
        found = [each for odd in met.odd.values() for each in _first(odd)]
        for target in recipe.targets:
            found += _first(each for each in met.by_target.get(target, ()) if each != number)
        graph = rules.graph(order_only=True)
        own = graph.numbers(recipe.targets)
        needed = rules.needed(recipe.targets) & met.bits
        for component in own:
            needed &= ~(1 << component)
        if needed.bit_count() > N_NEEDED:
            return None
        while needed:
            component = needed.bit_length() - 1
            needed ^= 1 << component
            found += _first(each for each in met.by_component[component] if each != number)
        for component in own:  # targets that need each other
            found += _first(each for each in met.by_component.get(component, ()) if each != number)
        return found

    def unordered(self) -> Iterator[tuple[Recipe, Recipe, Use, Use]]:
        """Yield the recipes that write the file and do not wait for one that does before them.

        The later one, the first such earlier one, and the first use of each: for each writer and
        each make in which it meets others, in order of time.
        """
        if len(self.first) < N_FIRST:
            return
        self._prepare()
        recipes = self._recipes.recipes
        for use in self.first.values():
            for number in self._recipes.chain(use.recipe):
                met = self._meetings.get(recipes[number].make)
                if met is None or met.rules is None or met.rules.is_serial:
                    continue
                if met.unordered is None:
                    met.unordered = self._find_unordered(met, met.rules)
                other = met.unordered.get(number, NONE)
                if other == NONE:
                    continue
                if self._places[met.first[other].recipe] < self._places[use.recipe]:
                    yield recipes[number], recipes[other], use, met.first[other]

    def _find_unordered(self, met: _Meeting, rules: Rules) -> dict[int, int]:
        """Return for each recipe the first one that it does not wait for.

        A recipe that waits for another one waits for all that this one waits for, so a row of
        recipes, each of which waits for the one before, is looked at once.
        """
        found = dict[int, int]()
        own = [each for each in met.first if self.targets(each)]
        #: of each recipe, how many of the first ones it waits for
        n_before = list[int]()
        #: the components of each N_BLOCK recipes as bits, 0 when the graph has not all of them
        blocks = self._blocks(own, rules)
        top = 0
        for at, number in enumerate(own):
            mine = self.targets(number)
            begin = 0
            for earlier in {at - 1, top} if at else ():
                if n_before[earlier] > begin and all(
                    rules.needs(mine, [target], order_only=True)
                    for target in self.targets(own[earlier])
                ):
                    begin = n_before[earlier]
            n_waited, needed, n_contrary, i = begin, 0, 0, begin
            is_exempt = self._text not in mine and rules.needs(mine, [self._text], order_only=True)
            while i < len(own):
                if i == at:
                    i += 1
                    continue
                if not i % N_BLOCK and i + N_BLOCK <= at and (block := blocks[i // N_BLOCK]):
                    needed = needed or rules.needed(mine)
                    if not block & ~needed:
                        n_waited = i + N_BLOCK if n_waited == i else n_waited
                        i += N_BLOCK
                        continue
                if i > at and self._places[met.first[own[i]].recipe] > met.last[number]:
                    break
                other = self.targets(own[i])
                if rules.needs(mine, other, order_only=True):
                    n_waited = i + 1 if n_waited == i and i < at else n_waited
                elif not rules.needs(other, mine, order_only=True):
                    if not is_exempt:
                        found[number] = own[i]
                    break
                else:
                    n_contrary += 1
                    if n_contrary > N_CONTRARY:
                        break
                i += 1
            n_before.append(n_waited)
            top = at if n_waited == at else top
        return found

    def _blocks(self, own: list[int], rules: Rules) -> list[int]:
        graph, found = rules.graph(order_only=True), list[int]()
        for at in range(0, len(own), N_BLOCK):
            numbers = [graph.numbers(self.targets(each)) for each in own[at : at + N_BLOCK]]
            found.append(bits_of(set().union(*numbers)) if all(numbers) else 0)
        return found


def _first(items: Iterable[T]) -> list[T]:
    """Return the first N_FIRST of some items."""
    return [item for item, _ in zip(items, range(N_FIRST), strict=False)]
