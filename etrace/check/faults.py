# SPDX-License-Identifier: Apache-2.0
"""Rules of makes and their recipes -> what the rules lack.

A fault is one only when the recipe's targets are known, and nothing that make was asked orders it:
no prerequisite, order-only ones included, no sequence of recipes, none of the makes around.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain, permutations, zip_longest
from os.path import relpath

from etrace.check.kinds import (
    HOME,
    MISSING_DIRECTORY,
    MISSING_INPUT,
    MISSING_ORDER,
    NETWORK,
    NEVER_READ,
    SHARED_TEMPORARY,
    TIME_OR_RANDOM,
    TWO_WRITERS,
    UNDECLARED_OUTPUT,
    Fault,
)
from etrace.check.project import folders_of_sources
from etrace.check.writers import Writers
from etrace.export.ninja import escape_path
from etrace.query.files import READ, WRITE
from etrace.query.rows.file_kinds import USUAL, FileKind
from etrace.rules.recipes import Recipe, Recipes, Use
from etrace.rules.rule import Rules, absolute
from etrace.spec.builders import NINJA
from etrace.spec.database import NONE

SYMMETRIC = (TWO_WRITERS, SHARED_TEMPORARY)
ORDERS = (MISSING_ORDER, MISSING_DIRECTORY)
_NOT_OF_NINJA = re.compile(r"[|\r\n]")
#: options of make with a value, in the same word or in the next one
_DIRECTORY = re.compile(r"(?:-C|--directory(?:=|$))(.*)", re.DOTALL)
_MAKEFILE = re.compile(r"(?:-[a-zA-Z]*?f|--(?:file|makefile)(?:=|$))(.*)", re.DOTALL)
PAIR = 2
WITHOUT_REMEDY = (NETWORK, HOME, TIME_OR_RANDOM)


class Faults:
    """Finds the faults of one image."""

    def __init__(self, recipes: Recipes, rules: Mapping[int, Rules]) -> None:
        self.recipes, self.rules = recipes, rules
        self._found: dict[tuple[str, str, int], list[tuple[Recipe, Recipe | None, Use, int]]]
        self._found = defaultdict(list)
        self._names: set[tuple[str, str]] = set()
        self._tops: dict[int, list[str]] = {}
        self._made_in: dict[str, frozenset[tuple[str, ...]]] = {}
        self._beyond: dict[tuple[int, frozenset[str]], list[tuple[Rules, set[str]]]] = {}

    def look(self) -> None:
        """Look at inputs, orders and writers of files."""
        for path, uses in self.recipes.uses.items():
            if self.counts(path):
                self._look(path, uses)

    def found(self) -> list[Fault]:
        """Return the faults by id, then by file."""
        return sorted(map(self._fault, self._found), key=lambda fault: (fault.id, fault.file))

    def counts(self, path: int) -> bool:
        """Whether a file is there and of the build, or made by it."""
        recipes = self.recipes
        if not recipes.is_there(path):
            return False
        kind = recipes.records.file_kinds.of(path)
        # a program that the build makes and runs is a tool, but one of its files
        return kind in USUAL or (
            kind == FileKind.TOOL and any(use.access & WRITE for use in recipes.uses[path])
        )

    def _look(self, path: int, uses: list[Use]) -> None:
        text = self.recipes.records.path(path)
        written = [use for use in uses if use.access & WRITE]
        writers = Writers(self.recipes, self.rules, text, written)
        begins = [use.begin_ns for use in written]
        seen: set[tuple[int, int]] = set()
        for use in uses:
            if not use.access & READ:
                continue
            own = writers.first.get(use.recipe)
            if own is not None and own.begin_ns < use.begin_ns:
                continue
            if n_before := bisect_left(begins, use.begin_ns):
                self._look_at_order(text, use, writers, written[n_before - 1], seen)
            elif not written:
                self._look_at_input(text, use)
            elif own is None and (len(writers.first) == 1 or self.is_target(text, written[0])):
                self.look_at_early(text, use, written[0])
        for later, earlier, use, by in writers.unordered():
            self.add(TWO_WRITERS, text, later, earlier, use, by.execution)
        self.look_at_siblings(TWO_WRITERS, text, writers.first.values())

    def pair(self, a: int, b: int) -> tuple[Recipe, Recipe, Rules] | None:
        """Return two recipes of one make that both have known targets, and its rules."""
        if (met := self.recipes.meet(a, b)) is None:
            return None
        one, other = (self.recipes.recipes[number] for number in met)
        rules = self.rules.get(one.make)
        if rules is None or rules.is_serial or not one.targets or not other.targets:
            return None
        return None if one.possible & other.possible else (one, other, rules)

    def _look_at_order(
        self, text: str, use: Use, writers: Writers, last: Use, seen: set[tuple[int, int]]
    ) -> None:
        """Look whether a reader waits for a writer before it; `last` is the last one of these."""
        for writer in writers.that_matter(use.recipe):
            if writer.begin_ns >= use.begin_ns:
                break
            pair = self.pair(use.recipe, writer.recipe)
            if pair is None or self.is_ordered(text, pair):  # a sequence, or unknown
                if pair is not None:
                    self._look_at_stale(text, use, pair)
                self._look_at_input_of_other_make(text, use, writer)
                return
        if (use.recipe, last.recipe) in seen:
            return
        seen.add((use.recipe, last.recipe))
        self._add_order(text, use, last)

    def _add_order(self, text: str, use: Use, writer: Use) -> None:
        """Note a reader that does not wait for a writer, unless it makes the file itself."""
        if (met := self.recipes.meet(use.recipe, writer.recipe)) is None:
            return
        pair = self.pair(use.recipe, writer.recipe)
        if pair is None or self._makes_itself(text, met[0]):
            return
        if self.is_asked_for(pair[1].targets, pair[1].make, pair[2]):
            self.add(MISSING_ORDER, text, pair[0], pair[1], use, writer.execution)

    def look_at_early(self, text: str, use: Use, writer: Use) -> None:
        """Look whether a file was read, or looked for, before a recipe that makes it.

        `writer` is the first use of that recipe. Of a trace with one job, the order of both is
        that of the list of prerequisites, and nothing else may say that one waits for the other.
        """
        pair = self.pair(use.recipe, writer.recipe)
        if pair is None or self.is_ordered(text, pair):
            return
        reader, other, rules = pair
        if not self.is_below(text, rules):
            return
        if not rules.needs(other.targets, reader.targets, order_only=True):
            self._add_order(text, use, writer)

    def is_target(self, text: str, writer: Use) -> bool:
        """Whether the make that a file was written in has it as a target."""
        rules = self.rules_of(writer.recipe)
        return rules is not None and rules.is_target(text)

    def rules_of(self, number: int) -> Rules | None:
        """Return the rules of the make that ran a recipe; None when they are not known."""
        return None if number == NONE else self.rules.get(self.recipes.recipes[number].make)

    def _makes_itself(self, text: str, number: int) -> bool:
        """Whether a recipe runs a make that makes the file, or of which that is not known."""
        for row in self._makes_below.get(number, ()):
            if row in self.recipes.of_make and row not in self.rules:
                return True
            if text not in self._made_in:
                self._made_in[text] = frozenset(map(self._reads, self._makers.get(text, ())))
            if self._reads(row) in self._made_in[text]:
                return True
        return False

    @cached_property
    def _makers(self) -> Mapping[str, Sequence[int]]:
        """Paths -> the makes that have a recipe for them."""
        found: dict[str, list[int]] = defaultdict(list)
        for make, rules in self.rules.items():
            for path, rule in rules.by_path.items():
                if rule.is_target and rule.has_recipe:
                    found[path].append(make)
        return found

    @cached_property
    def _makes_below(self) -> Mapping[int, Sequence[int]]:
        """Executions of make and ninja, those without recipes too, by recipes around them."""
        found: dict[int, list[int]] = defaultdict(list)
        for row, number in enumerate(self.recipes.of_row):
            if number != NONE and self.recipes.is_make(row):
                for each in self.recipes.chain(number):
                    found[each].append(row)
        return found

    def _reads(self, row: int) -> tuple[str, ...]:
        """Return where a make works, and the makefiles that its command names."""
        words, directory = self.recipes.records.argv(row), self.recipes.records.directory(row)
        makefiles = list[str]()
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            if found := _DIRECTORY.fullmatch(word):
                directory = absolute(directory, found[1] or following)
            elif found := _MAKEFILE.fullmatch(word):
                makefiles.append(found[1] or following)
        return directory, *makefiles

    @staticmethod
    def is_ordered(text: str, pair: tuple[Recipe, Recipe, Rules]) -> bool:
        """Whether the first of two recipes waits for the second, or for a file."""
        reader, writer, rules = pair
        if rules.needs(reader.possible, [text, *writer.possible], order_only=True):
            return True
        first = rules.before_all
        if not writer.targets.isdisjoint(rules.makefiles):
            return True
        return not writer.targets.isdisjoint(first) and reader.targets.isdisjoint(first)

    def _look_at_stale(self, text: str, use: Use, pair: tuple[Recipe, Recipe, Rules]) -> None:
        """Note a made file that a target is only made after, not because of."""
        reader, writer, rules = pair
        wanted = [text, *writer.possible]
        if rules.needs(reader.possible, wanted, order_only=False):
            return
        if rules.runs_always(reader.possible) or not self._writes(self.recipes.recipes[use.recipe]):
            return
        self.add(MISSING_INPUT, text, reader, writer, use, NONE)

    def _look_at_input(self, text: str, use: Use) -> None:
        recipe = self.recipes.recipes[use.recipe]
        if self._lacks(text, recipe, ()) and self._writes(recipe):
            self.add(MISSING_INPUT, text, recipe, None, use, NONE)

    def _lacks(self, text: str, recipe: Recipe, beside: Iterable[str]) -> bool:
        """Whether a change of a file, and of those made with it, does not make a target again."""
        rules = self.rules.get(recipe.make)
        if rules is None or not recipe.targets or not self.is_below(text, rules):
            return False
        wanted = [text, *beside]
        if text in rules.makefiles or rules.needs(recipe.possible, wanted, order_only=False):
            return False
        if rules.runs_always(recipe.possible):
            return False
        others = self._made_beyond(recipe)
        return not any(each.needs(paths, wanted, order_only=False) for each, paths in others)

    def _made_beyond(self, recipe: Recipe) -> Sequence[tuple[Rules, set[str]]]:
        """Return what a recipe needs that other makes make, and what that needs of others."""
        key = recipe.make, recipe.possible
        if key not in self._beyond:
            todo = [*self.rules[recipe.make].inputs(recipe.possible)]
            found = defaultdict[int, set[str]](set, {recipe.make: set(todo)})
            while todo:
                path = todo.pop()
                for make in self._makers.get(path, ()):
                    if path not in found[make]:
                        found[make].add(path)
                        todo += self.rules[make].inputs([path])
            del found[recipe.make]
            self._beyond[key] = [(self.rules[make], paths) for make, paths in found.items()]
        return self._beyond[key]

    def _writes(self, recipe: Recipe) -> bool:
        """Whether a command wrote a file: nothing that one reads which only prints is an input."""
        kind_of = self.recipes.records.file_kinds.of
        return any(
            access & WRITE and kind_of(path) != FileKind.DEVICE
            for path, access in recipe.uses.items()
        )

    def _look_at_input_of_other_make(self, text: str, use: Use, writer: Use) -> None:
        """Look at an input that another make makes; of one make, see _look_at_stale()."""
        reader, other = (self.recipes.recipes[each.recipe] for each in (use, writer))
        is_known = reader.make in self.rules and other.make in self.rules
        if reader.make == other.make or not is_known or not other.targets:
            return
        if writer.recipe in self.recipes.chain(use.recipe):  # it wrote, then ran the reader's make
            return
        if not self._lacks(text, reader, other.targets) or not self._writes(reader):
            return
        self.add(MISSING_INPUT, text, reader, other, use, NONE)

    def look_at_siblings(self, kind: str, text: str, written: Iterable[Use]) -> None:
        """Look for runs of one recipe for each of its targets, which write the same file.

        make runs the recipe of `a b: c` for a and for b, at once with -j.
        """
        if self.has(kind, text):
            return
        last: dict[int, tuple[int, Use]] = {}
        for use in written:
            for number in self.recipes.chain(use.recipe):
                recipe = self.recipes.recipes[number]
                rules = self.rules.get(recipe.make)
                if rules is None or rules.tool == NINJA or rules.is_serial:
                    continue
                before, by = last.get(recipe.make, (NONE, use))
                last[recipe.make] = number, use
                if before == number:
                    continue
                if pair := self._siblings(text, recipe, before, rules):
                    one, other = (replace(recipe, targets=frozenset([each])) for each in pair)
                    self.add(kind, text, other, one, use, by.execution)
                    return

    def _siblings(
        self, text: str, recipe: Recipe, before: int, rules: Rules
    ) -> tuple[str, str] | None:
        """Return two targets that nothing orders, for which recipes wrote or may write a file."""
        own = recipe.shown or recipe.targets
        if before != NONE:
            earlier = self.recipes.recipes[before]
            others = earlier.shown or earlier.targets
            if len(own) == len(others) == 1 and own != others:
                return _apart(text, others | own, rules)
            command, lines = self.recipes.command(recipe), self.recipes.lines(rules)
            is_again = others == own and command == self.recipes.command(earlier)
            # a line that no recipe has twice ran for two targets
            if is_again and all(len(lines.places(command, each)) == 1 for each in own):
                return _apart(text, own, rules)
        if text not in recipe.targets or (len(own) == 1 and text in own):
            return None
        # the recipe ran once, as with one job, and has made what its other run would make
        rule = rules.by_path.get(text)
        for each in sorted((own | recipe.targets) - {text} if len(own) > 1 else own):
            other = rules.by_path.get(each)
            is_same = rule and other and rule.recipe and rule.recipe == other.recipe
            goals = self._goals(recipe.make, rules) if is_same else frozenset[str]()
            if goals and all(rules.needs(goals, [own], order_only=True) for own in (text, each)):
                return _apart(text, {each, text}, rules)
        return None

    def is_below(self, text: str, rules: Rules | None) -> bool:
        """Whether a file is of the project: see project.py; below where the build began, too."""
        if id(rules) not in self._tops:
            root = str(self.recipes.image.attributes.get("source_root", ""))
            own = [root] if root else []
            if rules is not None:
                root = root or str(rules.directory)
                own = [root, *rules.roots, *folders_of_sources(rules, root.rstrip("/"))]
            self._tops[id(rules)] = [each.rstrip("/") for each in own]
        return any(text == top or text.startswith(f"{top}/") for top in self._tops[id(rules)])

    def is_asked_for(self, targets: Iterable[str], make: int, rules: Rules) -> bool:
        """Whether the goals of a make need one of some targets now, or are not known.

        Where they do not, though a recipe ran for it, makefiles look at what is there
        (`$(wildcard)`), and have other rules in a clean tree.
        """
        goals = self._goals(make, rules)
        return not goals or rules.needs(goals, targets, order_only=True)

    def _goals(self, make: int, rules: Rules) -> frozenset[str]:
        """Return the paths of the goals of a make; none when they are not known."""
        if rules.tool == NINJA:
            return frozenset()
        return frozenset(map(rules.path, self.recipes.goals(make, rules)))

    # ---- faults ----

    def add(
        self, name: str, text: str, reader: Recipe, writer: Recipe | None, use: Use, by: int
    ) -> None:
        """Note a fault of a file: its reader, its writer, the reader's use, the writer's row."""
        self._names.add((name, text))
        self._found[name, text, reader.make].append((reader, writer, use, by))

    def has(self, name: str, text: str) -> bool:
        """Whether a fault of a file was noted."""
        return (name, text) in self._names

    def _fault(self, key: tuple[str, str, int]) -> Fault:
        name, text, make = key
        rules, found = self.rules[make], self._found[key]
        named = rules.names
        targets = sorted({_first(reader, named) for reader, *_ in found})
        reader, writer, use, by = min(found, key=lambda each: (_first(each[0], named), each[2]))
        made_for = () if writer is None else tuple(sorted(named.get(p, p) for p in writer.targets))
        needed = named.get(text) or relpath(text, rules.directory)
        if name in SYMMETRIC or (name in ORDERS and text not in named):
            needed = made_for[0]
        fixed = [_first(reader, named)] if name in SYMMETRIC else targets
        is_input = name not in (*SYMMETRIC, MISSING_DIRECTORY)
        is_input = is_input and not rules.needs(reader.targets, [text], order_only=False)
        remedy = _remedy(name, (fixed, targets, made_for[:1]), needed, rules, is_input=is_input)
        return Fault(
            name, text, str(rules.directory), rules.makefile, tuple(targets), made_for,
            use.execution, by, remedy,
        )  # fmt: skip


def _apart(text: str, targets: Set[str], rules: Rules) -> tuple[str, str] | None:
    """Return two of the targets, when each has a recipe of its own and none waits for another.

    None, too, when one waits for the file itself: then it changes what was made before.
    """
    if len(targets) < PAIR or any(
        (rule := rules.by_path.get(each)) is None
        or not targets.isdisjoint(map(rules.path, rule.also))
        for each in targets
    ):
        return None
    for one, other in permutations(sorted(targets), PAIR):
        if rules.needs([one], [other, *([text] if one != text else [])], order_only=True):
            return None
    one, other, *_ = sorted(targets)
    return one, other


def _written(name: str, tool: str) -> str:
    """Return a name as a makefile or build.ninja has it."""
    if tool == NINJA:
        return escape_path(name)
    return re.sub(r"([ \t#:%])", r"\\\1", name).replace("$", "$$")


def _remedy(
    name: str, lists: Sequence[Sequence[str]], needed: str, rules: Rules, *, is_input: bool
) -> str:
    """Return the line that repairs a fault; empty when none does, or none can have the names."""
    is_ninja = rules.tool == NINJA
    if name in WITHOUT_REMEDY or (
        is_ninja and any(map(_NOT_OF_NINJA.search, chain(*lists, [needed])))
    ):
        return ""
    fixed, targets, made_for, need = (
        " ".join(_written(each, rules.tool) for each in own) for own in (*lists, [needed])
    )
    #: of make, of ninja
    lines = {
        NEVER_READ: [f"{targets}: {need}"] * 2,
        UNDECLARED_OUTPUT: [f"{need}: {made_for} ;", f"build {made_for} | {need}: ..."],
        MISSING_DIRECTORY: [f"{targets}: | {need}", f"build {targets}: ... || {need}"],
    }
    # of what a dependency file names, only the order is missing
    otherwise = [f"{fixed}: {need}", f"build {fixed}: ... {'|' if is_input else '||'} {need}"]
    return lines.get(name, otherwise)[is_ninja]


def _first(recipe: Recipe, named: Mapping[str, str]) -> str:
    """Return the name of the first target of a recipe."""
    return min(named.get(path, path) for path in recipe.targets)
