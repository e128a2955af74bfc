# SPDX-License-Identifier: Apache-2.0
"""What one run of make or ninja declares: targets, and what each needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from os.path import islink, lexists, normpath, realpath
from pathlib import Path

from libetrace.core.regular_file import PATH_MAX

from etrace.rules.reach import Reach, bits_of

#: goals that are looked at one by one
N_FEW = 16


@dataclass(slots=True)
class Rule:
    """A file that make or ninja knows. Names are those of the makefile.

    `learned` are inputs that a compiler named in an earlier run: ninja takes them as inputs, but
    the first build is not ordered by them.
    """

    name: str
    needs: tuple[str, ...] = ()
    order_only: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    is_target: bool = True
    is_phony: bool = False
    has_recipe: bool = False
    #: lines before expansion, of make alone
    recipe: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """The rules of one make, by absolute paths; phony targets and files that are not there too."""

    directory: Path
    rules: Mapping[str, Rule]
    #: whether make runs one recipe after the other whatever -j says
    is_serial: bool = False
    makefiles: frozenset[str] = frozenset()
    #: the first of them, where it is known
    makefile: str = ""
    #: "make" or "ninja"
    tool: str = "make"
    #: targets by the command of their recipe, where only one recipe has it; not known of make
    by_command: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: folders that belong to the project, as the tool's generator says
    roots: tuple[str, ...] = ()
    #: by the identity of a set, which is kept: its components as bits
    _goals: dict[tuple[int, bool], tuple[frozenset[str], int]] = field(default_factory=dict)
    _graphs: dict[bool, Reach] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return a name as a path."""
        return absolute(str(self.directory), name)

    @cached_property
    def by_path(self) -> Mapping[str, Rule]:
        """Rules by the paths of their targets."""
        return {self.path(name): rule for name, rule in self.rules.items()}

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Names of targets by their paths, as the makefile has them."""
        return {self.path(name): name for name in self.rules}

    def needs(self, targets: Iterable[str], wanted: Iterable[str], *, order_only: bool) -> bool:
        """Return whether one of the paths `wanted` is a target or needed by one.

        With `order_only`, by what is made before a target; without it, by what makes it stale.
        """
        graph = self.graph(order_only=order_only)
        own = targets if isinstance(targets, frozenset) else frozenset(targets)
        others = wanted if isinstance(wanted, frozenset) else frozenset(wanted)
        if not own.isdisjoint(others):
            return True
        if len(others) <= N_FEW or others is not wanted:
            goals = graph.numbers(others)
            return any(graph.reaches(at, goal) for at in graph.numbers(own) for goal in goals)
        # the same large set is asked for again and again
        key = id(others), order_only
        if key not in self._goals:
            self._goals[key] = others, bits_of(graph.numbers(others))
        return any(graph.bits(at) & self._goals[key][1] for at in graph.numbers(own))

    def needed(self, targets: Iterable[str]) -> int:
        """Return the components of targets and of all that is made before them, as bits."""
        graph, found = self.graph(order_only=True), 0
        for number in graph.numbers(targets):
            found |= graph.bits(number)
        return found

    def graph(self, *, order_only: bool) -> Reach:
        """Return the graph of the paths of targets and of what each needs: see needs()."""
        if order_only not in self._graphs:
            self._graphs[order_only] = Reach(self._edges(order_only=order_only))
        return self._graphs[order_only]

    def _edges(self, *, order_only: bool) -> Mapping[Hashable, Sequence[Hashable]]:
        found: dict[Hashable, Sequence[Hashable]] = {}
        for path, rule in self.by_path.items():
            lists = [rule.needs, rule.also, rule.order_only if order_only else rule.learned]
            # targets of one edge share a list: it is a node of the graph
            found[path] = [id(names) for names in lists if names]
            for names in lists:
                if names and id(names) not in found:
                    found[id(names)] = [*map(self.path, names)]
        return found

    @cached_property
    def before_all(self) -> frozenset[str]:
        """What is made before all else: the makefiles, and what they need."""
        found, todo = set[str](), list(self.makefiles)
        while todo:
            path = todo.pop()
            if path in found:
                continue
            found.add(path)
            if (rule := self.by_path.get(path)) is not None:
                todo += map(self.path, (*rule.needs, *rule.also, *rule.order_only))
        return frozenset(found)

    def runs_always(self, targets: Iterable[str]) -> bool:
        """Whether targets are made in every run: they need a phony one, or one that is missing."""
        graph = self.graph(order_only=False)
        return any(self._always[number] for number in graph.numbers(targets))

    @cached_property
    def _always(self) -> bytearray:
        graph = self.graph(order_only=False)
        return graph.reaching(
            graph.numbers(
                path for path, rule in self.by_path.items()
                if rule.is_phony or (rule.is_target and not lexists(path))
            )
        )  # fmt: skip


_real = cache(realpath)


@cache
def absolute(directory: str, name: str) -> str:
    """Return a name of a makefile as a path without links; one beyond PATH_MAX is kept."""
    path = normpath(f"{directory}/{name}" if not name.startswith("/") else name)
    if len(path) > PATH_MAX:  # realpath() takes time by the square of the length
        return path
    folder, _, last = path.rpartition("/")
    real = f"{_real(folder or '/').rstrip('/')}/{last}"
    if islink(real):  # noqa: PTH114  a text, for there are many
        real = realpath(real)
    return real if real != path else path
