# SPDX-License-Identifier: Apache-2.0
"""An image -> which children of make are lines of one recipe, and which recipes wait for which.

The rules are those in the image (etrace/rules/stored.py). Where it has none, nothing is known, and
the critical path is a lower bound.

A child of make is a line of the rule whose target it wrote, else the next line of a recipe whose
line before it has just ended. Else it begins the recipe that make would begin next among those that
have a line like it. `$(shell)` is run by make itself, which waits.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from libetrace.image.file import Image

from etrace.compilers.regular_file import read_regular
from etrace.query.files import BITS, WRITE
from etrace.query.rows.records import Records
from etrace.rules import stored
from etrace.rules.declared import Asked
from etrace.rules.goals import BUILDERS, MAX_LOG_BYTES, SLACK_NS, find_goals
from etrace.rules.goals import NAME as LOG_NAME
from etrace.rules.line_texts import (
    Lines,
    command_text,
    literal_of,
    may_be,
    parts_of,
    without_prefix,
)
from etrace.rules.recipes import MAKE, NINJA, Recipe, Recipes
from etrace.rules.rule import Rule, Rules
from etrace.spec.database import ACCESS, NONE
from etrace.timing.processes import most_at_once

NOT_READ = "its rules were not read: cas pp --targets"
#: make starts the next line when it sees the end of one
LATE_NS = 100_000_000
#: recipes with equal lines that are compared with a command by the names of their targets, and
#: commands that ended just before another one; recipes that may go on; rules without a recipe that
#: need each other
N_ALIKE, N_OPEN, N_DEEP = 64, 256, 64
SERIAL, ONE_SHELL = ".NOTPARALLEL", ".ONESHELL"
JOINED = "\n"
_LOG_HEAD = re.compile(rb"# ninja log v(\d{1,4})\n")
#: of the log, since which ninja runs what is on the longest way first
BY_CRITICAL_PATH = 6


@dataclass(slots=True)
class RecipeOrder:
    """What the rules of makes and ninjas say about the order of their children.

    Nodes are recipes that ran, and rules that ran nothing and need one that did. Children are rows:
    the first execution of their process. `lines` has the children of each node in their order,
    `waits` the nodes that it waits for, `place` where its make comes to it in its list. `functions`
    are children that make waited for while it read makefiles or expanded a recipe. `known` are the
    makes whose rules are known; `unknown` has others, and why; `strays` are children of known makes
    for which no recipe was found.
    """

    lines: list[list[int]] = field(default_factory=list)
    waits: list[list[int]] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    functions: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    unknown: dict[int, str] = field(default_factory=dict)
    strays: set[int] = field(default_factory=set)

    def add(self, place: int) -> int:
        """Append a node and return its number."""
        self.lines.append([])
        self.waits.append([])
        self.place.append(place)
        return len(self.lines) - 1


@dataclass(frozen=True, slots=True)
class Child:
    """A process that make started: when it ran, its command without blanks, what it wrote."""

    row: int
    start_ns: int
    end_ns: int
    text: str
    targets: frozenset[str]


def find_recipe_order(image: Image) -> RecipeOrder:
    """Return what the rules of a build say, where they may be asked for."""
    finder = _Finder(image)
    asked = stored.read(image) if stored.are_known(image) else Asked()
    return finder.known(asked.rules, asked.unknown)


class _Finder:
    """The children of all makes of one image."""

    def __init__(self, image: Image) -> None:
        self.image, self.records = image, Records(image)
        self.recipes, self.order = Recipes(self.records), RecipeOrder()
        self._of_make: dict[int, list[Recipe]] = defaultdict(list)
        for each in self.recipes.recipes:
            self._of_make[each.make].append(each)
        self.order.functions.update(self._functions())

    def known(self, rules: Mapping[int, Rules], unknown: Mapping[int, str]) -> RecipeOrder:
        """Find the recipes of the children of makes whose rules are known."""
        written = self._written(rules)
        for make in self._with_an_order():
            if (own := rules.get(make)) is None:
                self.order.unknown[make] = unknown.get(make, NOT_READ)
                continue
            self.order.known.add(make)
            ran = [each for each in self._of_make[make] if each.row not in self.order.functions]
            children = sorted(
                (self._child(each, written[each.row]) for each in ran),
                key=lambda each: (each.start_ns, each.row),
            )
            graph = Graph(own, self._goals(make, own))
            if own.tool == NINJA:
                _attribute_edges(graph, children, self._commands(ran))
                places = places_of_edges(graph)
            else:
                Attribution(graph, children).attribute()
                places = graph.places()
            self.order.strays.update(each.row for each in children if each.row not in graph.of_row)
            graph.write(self.order, places)
        return self.order

    def _with_an_order(self) -> list[int]:
        """Return makes with more than one child: one may wait for another."""
        functions = self.order.functions
        return [
            make for make, ran in self._of_make.items()
            if sum(each.row not in functions for each in ran) > 1
        ]  # fmt: skip

    def _goals(self, make: int, rules: Rules) -> list[str]:
        argv = self.recipes.argv(make)
        builder = BUILDERS[self.image.path_string(
            self.image["executions"]["binary"][make]).rpartition(b"/")[2]]  # fmt: skip
        named = [os.fsdecode(goal) for goal in find_goals(builder, argv)]
        return named or [rules.default_goal]

    def _rows(self, recipe: Recipe) -> range:
        """Return the executions of the process of a child."""
        upid, end = self.image["executions"]["upid"], recipe.row + 1
        while end < len(upid) and upid[end] == upid[recipe.row]:
            end += 1
        return range(recipe.row, end)

    def _child(self, recipe: Recipe, targets: Iterable[str]) -> Child:
        table, rows = self.image["executions"], self._rows(recipe)
        end = int(table["start_ns"][rows[-1]] + table["elapsed_ns"][rows[-1]])
        words = self.records.argv(rows[min(1, len(rows) - 1)])
        return Child(recipe.row, recipe.start_ns, end, command_text(words), frozenset(targets))

    def _commands(self, ran: Iterable[Recipe]) -> dict[int, str]:
        """Return what ninja gave the shell, by child."""
        return {each.row: self.recipes.command(each) for each in ran}

    def _written(self, rules: Mapping[int, Rules]) -> Mapping[int, set[str]]:
        """Return the targets that children wrote, by their rows."""
        opens, found = self.image["opens"], defaultdict[int, set[str]](set)
        texts: dict[int, str] = {}
        columns = (opens[name] for name in ("execution", "path", "mode"))
        for row, path, mode in zip(*columns, strict=True):
            number = self.recipes.of_row[row]
            if number == NONE or not BITS[mode & ACCESS] & WRITE:
                continue
            recipe = self.recipes.recipes[number]
            if (own := rules.get(recipe.make)) is None:
                continue
            if path not in texts:
                texts[path] = self.records.path(path)
            rule = own.by_path.get(texts[path])
            if rule is not None and rule.is_target:
                found[recipe.row].add(texts[path])
        return found

    def _functions(self) -> Iterator[int]:
        """Yield children whose output make itself read, and that read nothing of it.

        Two that read what the other wrote share the pipe of a jobserver.
        """
        read_by = self.image["pipe_readers"]["execution"]
        start, upid = self.image["executions"]["readers.start"], self.image["executions"]["upid"]

        def readers(rows: Iterable[int]) -> set[int]:
            return {upid[read_by[at]] for row in rows for at in range(start[row], start[row + 1])}

        for make, ran in self._of_make.items():
            if self.recipes.tool(make) != MAKE:
                continue
            own = [row for row in range(max(make - 1, 0), make + 1) if upid[row] == upid[make]]
            of_make = readers(own)
            for each in ran:
                if upid[each.row] not in of_make and upid[make] in readers(self._rows(each)):
                    yield each.row


class Graph:
    """The rules that a run of make or ninja came to: a node for the targets of one recipe.

    Some nodes have no targets: they let what is after `.WAIT` wait for what is before it.
    """

    def __init__(self, rules: Rules, goals: Sequence[str]) -> None:
        self.rules = rules
        self.targets: list[tuple[str, ...]] = []
        self.needs: list[list[int]] = []
        #: nodes in the order of a walk that goes below each of them first, from left to right
        self.walked: list[int] = []
        self.of_path: dict[str, int] = {}
        #: children by node, and the node of each child
        self.ran: dict[int, list[int]] = {}
        self.of_row: dict[int, int] = {}
        self._is_one_shell = ONE_SHELL in rules.rules and rules.rules[ONE_SHELL].is_target
        serial = rules.rules.get(SERIAL)
        self._is_serial = serial is not None and serial.is_target and not serial.needs
        self._serial = frozenset(serial.needs) if serial is not None else frozenset[str]()
        goal_paths = [path for path in map(rules.at, goals) if path in rules.by_path]
        roots = [*sorted(rules.makefiles & rules.by_path.keys()), *goal_paths]
        if rules.tool == NINJA or not goal_paths:
            roots += rules.by_path
        barrier = NONE
        for root in roots:
            if root not in self.of_path:
                node = self._walk(root, barrier)
                if self._is_serial:
                    barrier = self._barrier([node], barrier)

    def rule(self, node: int) -> Rule:
        """Return the rule of a node with targets."""
        return self.rules.by_path[self.targets[node][0]]

    def recipe(self, node: int) -> Sequence[str]:
        """Return what make gives a shell for a node with targets, before expansion."""
        lines = self.rule(node).recipe
        return [JOINED.join(map(without_prefix, lines))] if self._is_one_shell else lines

    def with_recipes(self) -> Iterator[int]:
        """Yield the nodes that have a recipe, in the order of the walk."""
        for node in self.walked:
            if self.targets[node] and self.rule(node).has_recipe:
                yield node

    def take(self, node: int, row: int) -> None:
        """Let a child be the next line of a recipe."""
        self.ran.setdefault(node, []).append(row)
        self.of_row[row] = node

    def write(self, order: RecipeOrder, places: Sequence[int]) -> None:
        """Append the nodes that ran or need one that did; rings of rules are cut."""
        number: dict[int, int] = {}
        for node in self.walked:
            needed = [number[each] for each in dict.fromkeys(self.needs[node]) if each in number]
            if node in self.ran or needed:
                number[node] = order.add(places[node])
                order.waits[-1] = needed
                order.lines[-1] = self.ran.get(node, [])

    def places(self) -> list[int]:
        """Return where make comes to each node."""
        found = [NONE] * len(self.targets)
        for at, node in enumerate(self.walked):
            found[node] = at
        return found

    def _add(self, targets: tuple[str, ...], barrier: int) -> int:
        self.targets.append(targets)
        self.needs.append([] if barrier == NONE else [barrier])
        return len(self.targets) - 1

    def _barrier(self, nodes: Iterable[int], barrier: int) -> int:
        found = self._add((), barrier)
        self.needs[found] += nodes
        self.walked.append(found)
        return found

    def _enter(self, path: str, barrier: int) -> _Entered:
        rule = self.rules.by_path[path]
        targets = (path, *(each for each in map(self.rules.at, rule.also) if each != path))
        node = self._add(targets, barrier)
        for each in targets:
            self.of_path.setdefault(each, node)
        names = iter((*rule.needs, *rule.order_only))
        is_serial = self._is_serial or rule.name in self._serial
        waits = frozenset(rule.waits)
        return _Entered(node, names, waits, is_serial, barrier, len(self.needs[node]))

    def _walk(self, root: str, barrier: int) -> int:
        """Walk below a target that was not walked to; return its node."""
        stack = [self._enter(root, barrier)]
        top = stack[0].node
        while stack:
            at = stack[-1]
            needs = self.needs[at.node]
            name = next(at.names, None)
            if name is None:
                self.walked.append(stack.pop().node)
                continue
            if (name in at.waits or at.is_serial) and len(needs) > at.n_waited:
                at.barrier = self._barrier(needs[at.n_waited :], at.barrier)
                at.n_waited = len(needs)
            path = self.rules.at(name)
            if path not in self.rules.by_path:
                continue
            if path not in self.of_path:
                stack.append(self._enter(path, at.barrier))
            if (other := self.of_path[path]) != at.node:
                needs.append(other)
        return top


@dataclass(slots=True)
class _Entered:
    """A node whose needs are walked to: the names to come, and what these wait for."""

    node: int
    names: Iterator[str]
    waits: frozenset[str]
    is_serial: bool
    barrier: int
    n_waited: int


# ---- ninja ----


def _attribute_edges(graph: Graph, children: Sequence[Child], commands: Mapping[int, str]) -> None:
    """Find the edges of the commands that ninja ran: each runs once."""
    for child in children:
        targets = graph.rules.by_command.get(commands[child.row]) or child.targets
        nodes = {graph.of_path[path] for path in targets}
        if len(nodes) == 1 and (node := nodes.pop()) not in graph.ran:
            graph.take(node, child.row)


def places_of_edges(graph: Graph) -> list[int]:
    """Return which edges ninja prefers: the first in build.ninja.

    Since 1.12, that is so of those on equally long ways to what needs them: the longest is first.
    """
    first = dict[int, int]()
    for at, path in enumerate(graph.rules.by_path):
        first.setdefault(graph.of_path[path], at)
    nodes, length = list(graph.walked), [0] * len(graph.targets)
    if _log_version(graph.rules) >= BY_CRITICAL_PATH:
        for node in reversed(nodes):  # what needs a node was walked to after it
            length[node] += bool(graph.targets[node]) and graph.rule(node).has_recipe
            for each in graph.needs[node]:
                length[each] = max(length[each], length[node])
    places = [NONE] * len(graph.targets)
    nodes.sort(key=lambda node: (-length[node], first.get(node, NONE)))
    for at, node in enumerate(nodes):
        places[node] = at
    return places


def _log_version(rules: Rules) -> int:
    """Return the version of ninja's log, 0 when there is none where it usually is."""
    text = read_regular(os.fsencode(rules.directory / os.fsdecode(LOG_NAME)), MAX_LOG_BYTES) or b""
    head = _LOG_HEAD.match(text)
    return int(head[1]) if head else 0


# ---- make ----


class Attribution:
    """The recipes of a run of make, and which children are lines of them.

    First come children that wrote a target; what ended just before such a line may be the line
    before it. The others follow make: it starts the next line of a recipe before anything new, and
    new ones as its list has them (etrace/timing/schedule.py).
    """

    def __init__(self, graph: Graph, children: Sequence[Child]) -> None:
        self._graph, self._children, self._places = graph, children, graph.places()
        #: recipes that are equal before expansion, in the order in which make comes to them
        self._alike: dict[tuple[str, ...], list[int]] = {}
        for node in graph.with_recipes():
            self._alike.setdefault(tuple(graph.recipe(node)), []).append(node)
        self._lines = Lines(
            (line, recipe) for recipe in self._alike for line in recipe if literal_of(line)
        )
        self._of_variables = [each for each in self._alike if not all(map(literal_of, each))]
        self._parts: dict[tuple[str, str], list[str]] = {}
        #: recipe and line of children that wrote a target, or ran before such a line
        self._sure: dict[int, tuple[int, int]] = {}
        self._is_begun = {node for node, _ in self._sure.values()}
        #: of recipes that have begun: the line that ran last, and its end
        self._last: dict[int, tuple[int, int]] = {}
        #: those that may go on
        self._open: dict[int, None] = {}
        self._ready = _Ready(graph, self._last, self._open)
        self._place, self._began_ns = NONE, 0
        # make may see an end before the trace has it
        spans = ((c.start_ns, max(c.start_ns, c.end_ns - SLACK_NS)) for c in children)
        self._is_serial = most_at_once(spans) <= 1

    def attribute(self) -> None:
        """Find the recipes of children."""
        self._find_writers()
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
        return self._graph.recipe(node)

    def _find_writers(self) -> None:
        """Find the recipes of children that wrote a target, by what they are like."""
        last: dict[int, int] = {}
        for child in self._children:
            paths = [path for path in child.targets if path in self._graph.of_path]
            nodes = {self._graph.of_path[path] for path in paths}
            found = [
                (line == NONE, self._places[node], node, line)
                for node in nodes if self._graph.rule(node).has_recipe
                for line in (self._any_line(node, child.text, last.get(node, NONE)),)
            ]  # fmt: skip
            if found:
                _, _, node, line = min(found)
                last[node] = max(line, last.get(node, 0))
                self._sure[child.row] = node, last[node]

    def _any_line(self, node: int, text: str, after: int) -> int:
        found = self._line(node, text, after, is_literal=True)
        return found if found != NONE else self._line(node, text, after, is_literal=False)

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
                while at >= least and ends[at] >= child.start_ns - LATE_NS:
                    each = by_end[at]
                    is_free = each.row not in self._sure and each.start_ns < child.start_ns
                    if is_free and self._is_line(node, line, each.text):
                        break
                    at -= 1
                else:
                    break
                child = each  # noqa: PLW2901  the one before it is next
                self._sure[child.row] = node, line

    def _going_on(self, child: Child, is_literal: bool) -> tuple[int, int] | None:
        """Return an open recipe whose next line a child may be: make saw its end first."""
        best, best_end_ns = None, child.start_ns + SLACK_NS
        for node in list(self._open):
            line, end_ns = self._last[node]
            if end_ns + LATE_NS < child.start_ns:
                del self._open[node]
            elif end_ns < best_end_ns:
                found = self._line(node, child.text, line, is_literal=is_literal)
                if found != NONE:
                    best, best_end_ns = (node, found), end_ns
        return best

    def _new(self, child: Child, is_literal: bool) -> tuple[int, int] | None:
        """Return the recipe that make would begin next of those with a line like this."""
        own = self._lines.with_command(child.text) if is_literal else self._of_variables
        found: list[tuple[bool, bool, bool, int, int, int]] = []
        for recipe in own:
            alike = self._alike[recipe]
            if not self._is_begun.isdisjoint(alike[:N_ALIKE]):
                alike[:N_ALIKE] = [n for n in alike[:N_ALIKE] if n not in self._is_begun]
            for node in alike[:N_ALIKE]:
                line = self._line(node, child.text, NONE, is_literal=is_literal)
                if node not in self._is_begun and line != NONE:
                    found.append((*self._turn(node, line, child), node, line))
        *_, node, line = min(found, default=(True, True, True, NONE, NONE, NONE))
        return None if node == NONE else (node, line)

    def _turn(self, node: int, line: int, child: Child) -> tuple[bool, bool, bool, int]:
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

    def _is_line(self, node: int, at: int, text: str) -> bool:
        line = self._recipe(node)[at]
        key = line, self._graph.rule(node).name if "$" in line else ""
        if key not in self._parts:
            self._parts[key] = parts_of(*key)
        return may_be(text, self._parts[key])

    def _line(self, node: int, text: str, after: int, *, is_literal: bool) -> int:
        """Return which line of a recipe after one a command may be, NONE for none.

        A line that is all variables may be any command, and several.
        """
        recipe = self._recipe(node)
        for at in range(max(after, 0), len(recipe)):
            if bool(literal_of(recipe[at])) != is_literal or (is_literal and at == after):
                continue
            if not is_literal or self._is_line(node, at, text):
                return at
        return NONE


class _Ready:
    """When recipes could begin: what they need has ended. Each need is looked at once or twice."""

    def __init__(
        self, graph: Graph, last: Mapping[int, tuple[int, int]], is_open: Mapping[int, None]
    ) -> None:
        self._graph, self._last, self._open = graph, last, is_open
        n = len(graph.targets)
        self._has_recipe = bytearray(n)
        for node in graph.with_recipes():
            self._has_recipe[node] = 1
        #: how many of its needs have ended, and when the last one did
        self._n_ended, self._ended_ns = [0] * n, [0] * n

    def since(self, node: int) -> int | None:
        """Return when a recipe could begin; None when something that it needs has not run."""
        stack, seen = [node], {node}
        while stack:
            at = stack[-1]
            needs = self._graph.needs[at]
            while (i := self._n_ended[at]) < len(needs):
                need = needs[i]
                if self._has_recipe[need]:
                    if need not in self._last or need in self._open:
                        return None
                    ended_ns = self._last[need][1]
                elif self._n_ended[need] < len(self._graph.needs[need]) and need not in seen:
                    if len(stack) > N_DEEP:
                        return None
                    stack.append(need)
                    seen.add(need)
                    break
                else:
                    ended_ns = self._ended_ns[need]
                self._ended_ns[at] = max(self._ended_ns[at], ended_ns)
                self._n_ended[at] += 1
            else:
                stack.pop()
        return self._ended_ns[node]
