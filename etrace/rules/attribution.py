# SPDX-License-Identifier: Apache-2.0
"""The recipes of make and ninja -> for which targets they ran, and as which line.

First what is sure, which faults are found by and the database has (find_targets()): a recipe is for
the targets that it wrote, or of ninja for those of the edge with its command. A command that can be
a line of one rule only is for the target of that, phony or not. The lines of a recipe follow one
another, and what a line wrote beside the targets, another line of the recipe reads.

Then what is likely, for times (MakeOrder): commands that can be lines of many recipes are of those
that make would run next.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from etrace.query.files import READ, WRITE
from etrace.rules.goals import SLACK_NS
from etrace.rules.graph import Graph, Ready
from etrace.rules.line_texts import Lines, literal_of
from etrace.rules.recipes import LATE_NS, Recipe, Recipes
from etrace.rules.rule import Rules
from etrace.spec.builders import NINJA
from etrace.spec.database import NONE

#: recipes with equal lines that are compared with a command by the names of their targets, and
#: commands that ended just before another one; recipes that may go on
N_ALIKE, N_OPEN = 64, 256
#: on a busy machine make may run so late what fits the next line by its text
OVERDUE_NS = 2_000_000_000


def find_targets(recipes: Recipes, rules: Mapping[int, Rules]) -> None:
    """Find the targets of recipes by the rules of their makes, where they are sure."""
    sure = _Sure(recipes, rules)
    sure.find_written()
    sure.find_by_text()
    sure.find_by_sequence()
    sure.find_by_reader()


class _Sure:
    def __init__(self, recipes: Recipes, rules: Mapping[int, Rules]) -> None:
        self._recipes, self._rules = recipes, rules
        #: of makes, without ninjas
        self._lines = {
            make: recipes.lines(known) for make, known in rules.items() if known.tool != NINJA
        }

    def find_written(self) -> None:
        """Find the targets that recipes wrote, or of ninja those of their edges."""
        recipes, written = self._recipes, defaultdict[int, set[str]](set)
        for path, uses in recipes.uses.items():
            if recipes.is_there(path):
                text = recipes.records.path(path)
                for use in uses:
                    if use.access & WRITE:
                        written[use.recipe].add(text)
        for number, recipe in enumerate(recipes.recipes):
            if (known := self._rules.get(recipe.make)) is not None:
                is_ninja = known.tool == NINJA
                own = known.by_command.get(recipes.command(recipe)) if is_ninja else None
                recipe.targets = own or frozenset(filter(known.is_target, written[number]))

    def find_by_text(self) -> None:
        """Add the target of which a command can be a line, where it is a line of no other rule."""
        for recipe in self._recipes.recipes:
            text = self._recipes.command(recipe)
            lines = self._lines.get(recipe.make)
            if not text or lines is None or recipe.row in self._recipes.functions:
                continue
            if shown := lines.shown(text):
                recipe.shown = shown
                known, first = self._rules[recipe.make], min(shown)
                # made by one run of one recipe
                if shown <= {first, *map(known.path, known.by_path[first].also)}:
                    recipe.targets |= shown

    def find_by_sequence(self) -> None:
        """Give a line the target of the line that ran before or after it, when nothing else ran.

        make runs the next line of a recipe before anything else.
        """
        for make, lines in self._lines.items():
            places = dict[int, int]()
            recipes = self._recipes.of_make.get(make, ())
            pairs = [*_sequences(recipes)]
            is_serial = len(pairs) == len(recipes) - 1
            for own, other in reversed(pairs):
                self._follow(own, other, places, lines, is_serial, step=-1)
            for other, own in pairs:
                self._follow(own, other, places, lines, is_serial, step=1)

    def _follow(
        self, recipe: Recipe, known: Recipe, places: dict[int, int], lines: Lines, is_serial: bool,
        *, step: int,
    ) -> None:  # fmt: skip
        """Give a recipe without targets that of its neighbour, if it can be another line of it."""
        if recipe.targets or len(known.targets) != 1 or recipe.row in self._recipes.functions:
            return
        (target,) = known.targets
        if known.row not in places:
            at = lines.places(self._recipes.command(known), target)
            if not at:
                return
            places[known.row] = at[0] if step < 0 else at[-1]
        possible = [
            at for at in lines.places(self._recipes.command(recipe), target)
            if (at - places[known.row]) * step > 0
        ]  # fmt: skip
        if possible:
            places[recipe.row] = max(possible) if step < 0 else min(possible)
            recipe.targets = known.targets
            is_next = places[recipe.row] - places[known.row] == step
            if is_serial and is_next and known.possible == known.targets and literal_of(
                lines.of(target)[places[recipe.row]]
            ):  # fmt: skip
                recipe.shown = known.targets  # no line of another rule can be in between

    def find_by_reader(self) -> None:
        """Give a line that wrote no target that of the only reader of what it wrote.

        A file that is gone at the end is temporary; where it is not, the line must be one of the
        reader's recipe.
        """
        recipes = self._recipes
        readers: dict[int, set[frozenset[str]]] = defaultdict(set)
        for path, uses in recipes.uses.items():
            is_there = recipes.is_there(path)
            # of more than one reader's targets, none is taken
            of_make: dict[int, set[frozenset[str]]] = defaultdict(set)
            for use in uses:
                other = recipes.recipes[use.recipe]
                own = of_make[other.make]
                if other.targets and use.access & READ and len(own) <= 1:
                    own.add(other.targets)
            for writer in uses:
                recipe = recipes.recipes[writer.recipe]
                if writer.access & WRITE and not recipe.targets:
                    readers[writer.recipe] |= {
                        targets for targets in of_make[recipe.make]
                        if not is_there or self._is_line(recipe, targets)
                    }  # fmt: skip
        for number, targets in readers.items():
            if len(targets) == 1:
                recipes.recipes[number].targets = next(iter(targets))

    def _is_line(self, recipe: Recipe, targets: Iterable[str]) -> bool:
        lines, text = self._lines.get(recipe.make), self._recipes.command(recipe)
        return lines is not None and any(lines.places(text, target) for target in targets)


def _sequences(recipes: Sequence[Recipe]) -> Iterator[tuple[Recipe, Recipe]]:
    """Yield two recipes of one make between which, and beside which, it ran nothing."""
    ends = 0
    for a, b in pairwise(recipes):
        is_alone = ends <= a.start_ns
        ends = max(ends, a.end_ns)
        if is_alone and a.end_ns <= b.start_ns:
            yield a, b


def read_targets(recipes: Recipes, rules: Mapping[int, Rules]) -> None:
    """Take the targets that find_targets() found when the database was made."""
    outputs = recipes.records.targets.outputs
    for each in recipes.recipes:
        if (known := rules.get(each.make)) is not None:
            names = map(os.fsdecode, outputs(each.row, each.make))
            each.targets = frozenset(map(known.at, names))


def take_edges(graph: Graph, children: Iterable[Recipe]) -> None:
    """Find the edges of the commands that ninja ran: each runs once."""
    for child in children:
        nodes = {graph.of_path.get(path, NONE) for path in child.targets}
        if len(nodes) == 1 and (node := nodes.pop()) != NONE and node not in graph.ran:
            graph.take(node, child.row)


class MakeOrder:
    """The recipes of a run of make, and which children are lines of them.

    First come children whose target is sure; what ended just before such a line may be the line
    before it. The others follow make: it starts the next line of a recipe before anything new, and
    new ones as its list has them (etrace/timing/schedule.py).
    """

    def __init__(
        self, graph: Graph, lines: Lines, children: Sequence[Recipe],
        command: Callable[[Recipe], str],
    ) -> None:  # fmt: skip
        """Take children in order of time, and what gives the command of each."""
        self._graph, self._children = graph, children
        self._lines, self._command = lines, command
        self._places = graph.places()
        #: nodes by line, in the order in which make comes to them
        self._alike: dict[str, list[int]] = defaultdict(list)
        for node in graph.with_recipes():
            for line in dict.fromkeys(self._recipe(node)):
                self._alike[line].append(node)
        self._of_variables = [line for line in self._alike if not literal_of(line)]
        #: node and line of children whose target is sure, or that ran before such a line
        self._sure: dict[int, tuple[int, int]] = {}
        self._is_begun = set[int]()
        #: of recipes that have begun: the line that ran last, and its end
        self._last: dict[int, tuple[int, int]] = {}
        #: those that may go on
        self._open: dict[int, None] = {}
        self._ready = Ready(graph, self._last, self._open)
        self._place, self._began_ns = NONE, 0
        # make may see an end before the trace has it
        self._is_serial = all(a.end_ns - SLACK_NS <= b.start_ns for a, b in pairwise(children))

    def attribute(self) -> None:
        """Find the recipes of children."""
        self._take_sure()
        self._find_lines_before()
        self._is_begun.update(node for node, _ in self._sure.values())
        for child in self._children:
            found = self._sure.get(child.row)
            for is_literal in (True, False):
                found = found or self._going_on(child, is_literal) or self._new(child, is_literal)
            if found is None:
                continue
            node, line = found
            if node not in self._last:
                self._place, self._began_ns = self._places[node], child.start_ns
            self._graph.take(node, child.row)
            self._is_begun.add(node)
            self._last[node] = line, max(child.end_ns, self._last.get(node, (0, 0))[1])
            self._open.pop(node, None)
            if line + 1 < len(self._recipe(node)) or not literal_of(self._recipe(node)[line]):
                self._open[node] = None
            if len(self._open) > N_OPEN:
                del self._open[next(iter(self._open))]

    def _recipe(self, node: int) -> Sequence[str]:
        return self._lines.of(self._graph.targets[node][0])

    def _take_sure(self) -> None:
        """Find the lines of children whose targets are sure; of several, the most alike."""
        last: dict[int, int] = {}
        for child in self._children:
            paths = [path for path in child.targets if path in self._graph.of_path]
            nodes = {self._graph.of_path[path] for path in paths}
            found = [
                (line == NONE, self._places[node], node, line)
                for node in nodes if self._graph.rule(node).has_recipe
                for line in (self._any_line(node, child, last.get(node, NONE)),)
            ]  # fmt: skip
            if found:
                _, _, node, line = min(found)
                last[node] = max(line, last.get(node, 0))
                self._sure[child.row] = node, last[node]

    def _any_line(self, node: int, child: Recipe, after: int) -> int:
        found = self._line(node, child, after, is_literal=True)
        return found if found != NONE else self._line(node, child, after, is_literal=False)

    def _find_lines_before(self) -> None:
        """Find the line before each line that is known, by its text and its end."""
        by_end = sorted(self._children, key=lambda each: each.end_ns)
        ends = [each.end_ns for each in by_end]
        known = {node for node, _ in self._sure.values()}
        for child in self._children:
            if (found := self._sure.get(child.row)) is None or found[0] not in known:
                continue
            node, line = found
            known.discard(node)  # of its first line alone
            while line > 0 and literal_of(self._recipe(node)[line - 1]):
                line -= 1
                at = bisect_right(ends, child.start_ns + SLACK_NS) - 1
                least = max(at - N_ALIKE, 0)
                while at >= least and ends[at] >= child.start_ns - OVERDUE_NS:
                    each = by_end[at]
                    is_free = each.row not in self._sure and each.start_ns < child.start_ns
                    if is_free and self._can_be(each, node, line):
                        break
                    at -= 1
                else:
                    break
                child = each  # noqa: PLW2901  the one before it is next
                self._sure[child.row] = node, line

    def _going_on(self, child: Recipe, is_literal: bool) -> tuple[int, int] | None:
        """Return an open recipe whose next line a child may be: make saw its end first."""
        best, best_end_ns = None, child.start_ns + SLACK_NS
        for node in list(self._open):
            line, end_ns = self._last[node]
            if end_ns + OVERDUE_NS < child.start_ns:
                del self._open[node]
            elif end_ns < best_end_ns and (is_literal or end_ns + LATE_NS >= child.start_ns):
                found = self._line(node, child, line, is_literal=is_literal)
                if found != NONE:
                    best, best_end_ns = (node, found), end_ns
        return best

    def _new(self, child: Recipe, is_literal: bool) -> tuple[int, int] | None:
        """Return the recipe that make would begin next of those with a line like this."""
        text = self._command(child)
        matching = filter(literal_of, self._lines.matching(text))
        lines = matching if is_literal else self._of_variables
        found = (
            (*self._turn(node, line, child), node, line)
            for node in {node for each in lines for node in self._to_begin(each, text)}
            if (line := self._line(node, child, NONE, is_literal=is_literal)) != NONE
        )
        *_, node, line = min(found, default=(True, True, True, NONE, NONE, NONE))
        return None if node == NONE else (node, line)

    def _to_begin(self, line: str, text: str) -> set[int]:
        """Return recipes with a line that have not begun: the first ones, and those named."""
        alike = self._alike.get(line, [])
        if not self._is_begun.isdisjoint(alike[:N_ALIKE]):
            alike[:N_ALIKE] = [node for node in alike[:N_ALIKE] if node not in self._is_begun]
        found = set(alike[:N_ALIKE])
        if len(alike) > N_ALIKE:
            of_path = self._graph.of_path
            found.update(of_path[path] for path in self._lines.named(line, text) if path in of_path)
        return found - self._is_begun

    def _turn(self, node: int, line: int, child: Recipe) -> tuple[bool, bool, bool, int]:
        """Return what is less for a recipe that is more likely to begin with a line now.

        It can begin, this is its first line, and make came to it after the last one that began and
        before it had to wait for a slot.
        """
        ready_ns, recipe = self._ready.since(node), self._recipe(node)
        seen_ns = child.start_ns if self._is_serial else self._began_ns
        return (
            ready_ns is None or ready_ns > child.start_ns + SLACK_NS,
            any(map(literal_of, recipe[:line])),
            ready_ns is None or ready_ns > seen_ns or self._places[node] < self._place,
            self._places[node],
        )

    def _can_be(self, child: Recipe, node: int, line: int) -> bool:
        path, text = self._graph.targets[node][0], self._command(child)
        return self._lines.can_be(text, path, self._recipe(node)[line])

    def _line(self, node: int, child: Recipe, after: int, *, is_literal: bool) -> int:
        """Return which line of a recipe after one a command may be, NONE for none.

        A line that is all variables may be any command, and several.
        """
        recipe = self._recipe(node)
        for at in range(max(after, 0), len(recipe)):
            if bool(literal_of(recipe[at])) != is_literal or (is_literal and at == after):
                continue
            if not is_literal or self._can_be(child, node, at):
                return at
        return NONE
