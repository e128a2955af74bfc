# SPDX-License-Identifier: Apache-2.0
"""What one run of make or ninja declares: targets, and what each needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from os.path import exists, islink, normpath, realpath
from pathlib import Path

from libetrace.core.regular_file import PATH_MAX

from etrace.rules.reach import Reach, bits_of
from etrace.spec.builders import MAKE, NINJA

#: of an archive, as make has it: LIBRARY(MEMBER)
_MEMBER = re.compile(r"(?<=.)\([^()]+\)$")
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
    #: whether it has commands that may change the file
    has_recipe: bool = False
    #: what `%` stands for in its name, where make says so
    stem: str = ""
    #: of make: lines before expansion; of ninja: the command, which outputs of one edge share
    recipe: list[str] = field(default_factory=list)
    #: whether it is made in every run, whatever it needs
    is_always: bool = False
    #: whether it need not be there for what needs it to be up to date
    is_intermediate: bool = False
    #: those of its needs that are begun after all before them are made (.WAIT)
    waits: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Return what `$@` stands for: of a member, its archive."""
        return _MEMBER.sub("", self.name)


def merged(rules: Sequence[Rule]) -> Rule:
    """Return the rules of one file as one: double colons, several names, members of an archive.

    Which of its recipes a command is of is not known, so what one of them needs counts for all.
    """
    if len(rules) == 1:
        return rules[0]
    first = max(rules, key=lambda rule: (rule.is_target, not _MEMBER.search(rule.name)))

    def joined(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(chain.from_iterable(lists)))

    return Rule(
        first.name,
        joined(rule.needs for rule in rules),
        joined(rule.order_only for rule in rules),
        joined(rule.learned for rule in rules),
        joined(rule.also for rule in rules),
        is_target=first.is_target,
        is_phony=any(rule.is_phony for rule in rules),
        is_always=any(rule.is_always for rule in rules),
        is_intermediate=all(rule.is_intermediate for rule in rules),
        has_recipe=any(rule.has_recipe for rule in rules),
        recipe=[line for rule in rules for line in rule.recipe],
        waits=joined(rule.waits for rule in rules),
    )


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
    #: what make makes when its command names no goal; empty when it is not known
    default_goal: str = ""
    #: MAKE or NINJA
    tool: str = MAKE
    #: folders that belong to the project, as the tool's generator says
    roots: tuple[str, ...] = ()
    #: what make itself wrote in the traced run, before it ran a command: `$(file >NAME,TEXT)`
    own_files: frozenset[str] = frozenset()
    #: by the identity of a set, which is kept: its components as bits
    _goals: dict[tuple[int, bool], tuple[frozenset[str], int]] = field(default_factory=dict)
    _graphs: dict[bool, Reach] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """Return the path of a name, with all links resolved."""
        return absolute(str(self.directory), name)

    def at(self, name: str) -> str:
        """Return where the rule of a name is in `by_path`; without a rule, its path."""
        return self._places.get(name) or self.path(name)

    @cached_property
    def _places(self) -> Mapping[str, str]:
        """Names -> paths whose last part may be a link, as each link may have a rule."""
        directory, is_make = str(self.directory), self.tool != NINJA
        return {
            name: place(directory, _MEMBER.sub("", name) if is_make else name)
            for name in self.rules
        }

    @cached_property
    def _by_place(self) -> Mapping[str, Rule]:
        found: dict[str, list[Rule]] = {}
        for name, rule in self.rules.items():
            found.setdefault(self._places[name], []).append(rule)
        return {at: merged(own) for at, own in found.items()}

    @cached_property
    def _links(self) -> Mapping[str, str]:
        """Places that are links -> where these lead to."""
        return {at: realpath(at) for at in self._by_place if is_link(at)}

    @cached_property
    def by_path(self) -> Mapping[str, Rule]:
        """Rules by the paths of their targets; of a file with no rule, that of the link to it."""
        found = dict(self._by_place)
        links: dict[str, list[Rule]] = {}
        for link, file in self._links.items():
            if not self._is_made(file):
                links.setdefault(file, []).append(self._by_place[link])
        return found | {file: merged(own) for file, own in links.items()}

    def _is_made(self, at: str) -> bool:
        rule = self._by_place.get(at)
        return rule is not None and (rule.is_target or self.tool == NINJA)

    def is_target(self, path: str) -> bool:
        """Whether make or ninja makes a file, or takes it for a target."""
        rule = self.by_path.get(path)
        return rule is not None and rule.is_target

    @cached_property
    def by_command(self) -> Mapping[str, frozenset[str]]:
        """Targets by the command of their edge, where only one edge has it; not known of make."""
        if self.tool != NINJA:
            return {}
        edges: dict[str, dict[int, list[str]]] = {}
        for name, rule in self.rules.items():
            for command in rule.recipe:
                edges.setdefault(command, {}).setdefault(id(rule.recipe), []).append(name)
        return {
            command: frozenset(self._places[name] for name in names)
            for command, of_edge in edges.items() if len(of_edge) == 1
            for names in of_edge.values()
        }  # fmt: skip

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Names of targets by their paths, as the makefile has them."""
        return {path: rule.name for path, rule in self.by_path.items()}

    def needs(self, targets: Iterable[str], wanted: Iterable[str], *, order_only: bool) -> bool:
        """Return whether one of the paths `wanted` is a target or needed by one.

        With `order_only`, by what is made before a target; without it, by what makes it stale.
        """
        graph = self.graph(order_only=order_only)
        own = targets if isinstance(targets, frozenset) else frozenset(targets)
        others = wanted if isinstance(wanted, frozenset) else frozenset(wanted)
        if not own.isdisjoint(others) or not (order_only or others.isdisjoint(self.own_files)):
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

    def inputs(self, targets: Iterable[str]) -> frozenset[str]:
        """Return targets and all files of which a change makes them stale."""
        return self._below(targets, lambda rule: map(
            self.path, (*rule.needs, *rule.also, *rule.learned)
        ))  # fmt: skip

    def graph(self, *, order_only: bool) -> Reach:
        """Return the graph of the paths of targets and of what each needs: see needs()."""
        if order_only not in self._graphs:
            self._graphs[order_only] = Reach(self._edges(order_only=order_only))
        return self._graphs[order_only]

    def _edges(self, *, order_only: bool) -> Mapping[Hashable, Sequence[Hashable]]:
        found: dict[Hashable, list[Hashable]] = {}
        kept = set[str]()
        for at, rule in self._by_place.items():
            lists = [rule.needs, rule.also, rule.order_only if order_only else rule.learned]
            if not order_only and self._is_kept(at, rule):
                kept.update(rule.needs if self.tool == NINJA else ())
                found[at] = [("", name) for name in rule.needs]
                continue
            # targets of one edge share a list: it is a node of the graph
            found[at] = [id(names) for names in lists if names]
            for names in lists:
                if names and id(names) not in found:
                    found[id(names)] = [self._node(each, order_only=order_only) for each in names]
        self._add_links(found, order_only=order_only)
        if order_only:
            self._add_waits(found)
        else:
            self._add_commands(kept, found)
        return found

    def _node(self, name: str, *, order_only: bool) -> Hashable:
        """Return the node of a need.

        A name for which there is no rule orders nothing, whatever other name the file has.
        """
        at = self._places.get(name)
        if at is None:
            at, is_leaf = self.path(name), self.tool == NINJA
        else:
            is_leaf = self.tool != NINJA and not self.rules[name].is_target
        return ("", name) if order_only and is_leaf and self._is_made(at) else at

    @staticmethod
    def _is_kept(at: str, rule: Rule) -> bool:
        """Whether a file is there, and no command of its rule changes it.

        Then make and ninja compare the time of that file alone with what needs it.
        """
        has_commands = rule.has_recipe or rule.is_phony
        return not has_commands and bool(rule.needs) and is_there(at)

    def _add_commands(self, names: Iterable[str], found: dict[Hashable, list[Hashable]]) -> None:
        """Add what makes ninja run what needs an alias that is there as a file: commands only."""
        todo = list(names)
        while todo:
            name = todo.pop()
            if ("", name) in found:
                continue
            rule, found["", name] = self.rules.get(name), []
            if rule is not None and (rule.has_recipe or rule.is_phony):
                found["", name].append(self._places[name])
            elif rule is not None:
                found["", name] += [("", each) for each in rule.needs]
                todo += rule.needs

    def _add_links(self, found: dict[Hashable, list[Hashable]], *, order_only: bool) -> None:
        for link, file in self._links.items():
            if not (order_only and self._is_made(file)):
                found[link].append(file)
            if self._is_made(link):  # what wrote the file may be the recipe of the link
                found.setdefault(file, []).append(link)

    def _add_waits(self, found: dict[Hashable, list[Hashable]]) -> None:
        """Let all that is begun after a .WAIT need what is before it."""
        more = list[tuple[Hashable, Hashable]]()
        for rule in self._by_place.values():
            seen, group, before = set[Hashable](), list[Hashable](), list[Hashable]()
            waits = frozenset(rule.waits)
            for name in (*rule.needs, *rule.order_only) if waits else ():
                if name in waits:
                    more += [((rule.name, name), each) for each in group + before]
                    group, before = [], [(rule.name, name)]
                todo = [self._node(name, order_only=True)]
                group += todo
                while todo:
                    if (at := todo.pop()) not in seen:
                        seen.add(at)
                        todo += found.get(at, ())
                        more += [(at, each) for each in before if not isinstance(at, int)]
        for at, each in more:
            found.setdefault(at, []).append(each)

    @cached_property
    def before_all(self) -> frozenset[str]:
        """What is made before all else: the makefiles, and what they need."""
        return self.made_before(self.makefiles)

    def made_before(self, paths: Iterable[str]) -> frozenset[str]:
        """Return paths and all that is made before them."""
        return self._below(paths, lambda rule: map(
            self.at, (*rule.needs, *rule.also, *rule.order_only)
        ))  # fmt: skip

    def _below(
        self, paths: Iterable[str], needed: Callable[[Rule], Iterable[str]]
    ) -> frozenset[str]:
        """Return paths and all that is needed below them."""
        found, todo = set[str](), list(paths)
        while todo:
            path = todo.pop()
            if path not in found:
                found.add(path)
                if (rule := self.by_path.get(path)) is not None:
                    todo += needed(rule)
        return frozenset(found)

    def runs_always(self, targets: Iterable[str]) -> bool:
        """Whether targets are made in every run: they need a phony one, or one that is missing."""
        graph = self.graph(order_only=False)
        return any(self._always[number] for number in graph.numbers(targets))

    @cached_property
    def _always(self) -> bytearray:
        graph = self.graph(order_only=False)
        learned = {name for rule in self._by_place.values() for name in rule.learned}
        missing = (at for at in map(self.path, learned) if at not in self._by_place)
        return graph.reaching(
            graph.numbers(chain(
                (at for at in missing if not is_there(at)),
                (at for at, rule in self._by_place.items() if _runs_always(at, rule)),
            ))
        )  # fmt: skip


def _runs_always(at: str, rule: Rule) -> bool:
    if rule.is_phony or rule.is_always:
        return True
    return rule.is_target and not rule.is_intermediate and not is_there(at)


@cache
def _real(path: str) -> str:
    return realpath(path)


@cache
def place(directory: str, name: str) -> str:
    """Return a name of a makefile as a path, as the kernel reads it; the last part may be a link.

    One beyond PATH_MAX is kept.
    """
    path = name if name.startswith("/") else f"{directory}/{name}"
    if len(path) > PATH_MAX:  # realpath() takes time by the square of the length
        return normpath(path)
    folder, _, last = path.rstrip("/").rpartition("/")
    if last in ("", ".", ".."):
        return _real(path)
    real = f"{_real(folder or '/').rstrip('/')}/{last}"
    return real if real != path else path


@cache
def absolute(directory: str, name: str) -> str:
    """Return a name of a makefile as a path without links; one beyond PATH_MAX is kept."""
    path = place(directory, name)
    return realpath(path) if is_link(path) else path


def is_there(path: str) -> bool:
    """Whether a path leads to a file: make and ninja take a link that leads nowhere for none."""
    return exists(path)  # noqa: PTH110  a text, for there are many


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link."""
    return len(path) <= PATH_MAX and islink(path)  # noqa: PTH114  a text, for there are many
