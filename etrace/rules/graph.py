# SPDX-License-Identifier: Apache-2.0
"""The rules of a run of make or ninja -> the graph of those that it came to, in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from etrace.rules.rule import Rule, Rules
from etrace.spec.builders import NINJA
from etrace.spec.database import NONE

SERIAL = ".NOTPARALLEL"
#: rules without a recipe that need each other
N_DEEP = 64


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

    def with_recipes(self) -> Iterator[int]:
        """Yield the nodes that have a recipe, in the order of the walk."""
        for node in self.walked:
            if self.targets[node] and self.rule(node).has_recipe:
                yield node

    def take(self, node: int, row: int) -> None:
        """Let a child be the next line of a recipe."""
        self.ran.setdefault(node, []).append(row)
        self.of_row[row] = node

    def places(self) -> Mapping[int, int]:
        """Return where make comes to each node."""
        return {node: at for at, node in enumerate(self.walked)}

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


class Ready:
    """When recipes could begin: what they need has ended. Each need is looked at once or twice."""

    def __init__(
        self, graph: Graph, last: Mapping[int, tuple[int, int]], is_open: Mapping[int, None]
    ) -> None:
        self._graph, self._last, self._open = graph, last, is_open
        n = len(graph.targets)
        self._has_recipe = frozenset(graph.with_recipes())
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
                if need in self._has_recipe:
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
