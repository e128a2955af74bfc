# SPDX-License-Identifier: Apache-2.0
"""Rules of makes and their recipes -> what the rules lack.

A fault is one only when the recipe's targets are known, and nothing that make was asked orders it:
no prerequisite, order-only ones included, no sequence of recipes, none of the makes around.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import lexists, relpath
from pathlib import PurePosixPath

from etrace.check.recipes import NINJA, Recipe, Recipes, Use
from etrace.check.rules import Rules
from etrace.query.files import READ, WRITE
from etrace.query.rows.file_kinds import USUAL
from etrace.spec.database import NONE

MISSING_INPUT, MISSING_ORDER, TWO_WRITERS = "missing-input", "missing-order", "two-writers"
WHY = {
    MISSING_INPUT: "a change of the file does not make the target again",
    MISSING_ORDER: "with -j the reader may run before the file is written, or in the middle of it",
    TWO_WRITERS: "with -j both may write at once, and the last one wins",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One file and one make; `writer` is NONE for a file that was there before.

    `targets` of the readers (the writers of two-writers) and `made_for` of the writer are as the
    makefile names them. `remedy` is a line for the makefile in `directory`.
    """

    id: str
    file: str
    directory: str
    makefile: str
    targets: tuple[str, ...]
    made_for: tuple[str, ...]
    reader: int
    writer: int
    remedy: str

    @property
    def key(self) -> str:
        """Return what stays the same from run to run: id, file and first target."""
        base = relpath(self.file, self.directory)
        return f"{self.id} {base} {self.targets[0]}"


class Faults:
    """Finds the faults of one image."""

    def __init__(self, recipes: Recipes, rules: Mapping[int, Rules]) -> None:
        self._recipes, self._rules = recipes, rules
        self._found: dict[tuple[str, str, int], list[tuple[Recipe, Recipe | None, Use, int]]]
        self._found = defaultdict(list)

    def find(self) -> list[Fault]:
        """Return the faults by id, then by file."""
        for path, uses in self._recipes.uses.items():
            if self._counts(path):
                self._look(path, uses)
        return sorted(map(self._fault, self._found), key=lambda fault: (fault.id, fault.file))

    def _counts(self, path: int) -> bool:
        recipes = self._recipes
        return recipes.is_there(path) and recipes.records.file_kinds.of(path) in USUAL

    def _look(self, path: int, uses: list[Use]) -> None:
        writers = [use for use in uses if use.access & WRITE]
        text = self._recipes.records.path(path)
        seen: set[tuple[int, int]] = set()
        for use in uses:
            if not use.access & READ:
                continue
            before = [writer for writer in writers if writer.begin_ns < use.begin_ns]
            if any(writer.recipe == use.recipe for writer in before):
                continue
            if before:
                self._look_at_order(text, use, before, seen)
            elif not writers:
                self._look_at_input(text, use)
        self._look_at_writers(text, writers)

    def _pair(self, a: int, b: int) -> tuple[Recipe, Recipe, Rules] | None:
        """Return two recipes of one make that both have known targets, and its rules."""
        if (met := self._recipes.meet(a, b)) is None:
            return None
        one, other = (self._recipes.recipes[number] for number in met)
        rules = self._rules.get(one.make)
        if rules is None or rules.is_serial or not one.targets or not other.targets:
            return None
        return None if one.targets & other.targets else (one, other, rules)

    def _look_at_order(
        self, text: str, use: Use, before: Iterable[Use], seen: set[tuple[int, int]]
    ) -> None:
        pairs = [(writer, self._pair(use.recipe, writer.recipe)) for writer in before]
        for _, pair in pairs:
            if pair is None:  # a sequence, or nobody knows
                return
            if self._is_ordered(text, pair):
                self._look_at_stale(text, use, pair)
                return
        writer, last = pairs[-1]
        if last is not None and (use.recipe, writer.recipe) not in seen:
            seen.add((use.recipe, writer.recipe))
            self._add(MISSING_ORDER, text, last[0], last[1], use, writer.execution)

    @staticmethod
    def _is_ordered(text: str, pair: tuple[Recipe, Recipe, Rules]) -> bool:
        reader, writer, rules = pair
        needed = rules.needed(reader.targets, order_only=True)
        if text in needed or (needed | rules.makefiles) & writer.targets:
            return True
        # what the makefiles themselves need is made before all else
        first = rules.needed(rules.makefiles, order_only=True)
        return bool(first & writer.targets) and not first & reader.targets

    def _look_at_stale(self, text: str, use: Use, pair: tuple[Recipe, Recipe, Rules]) -> None:
        """Note a made file that a target is only made after, not because of."""
        reader, writer, rules = pair
        needed = rules.needed(reader.targets, order_only=False)
        if text in needed or needed & writer.targets or self._runs_always(needed, rules):
            return
        self._add(MISSING_INPUT, text, reader, writer, use, NONE)

    def _look_at_input(self, text: str, use: Use) -> None:
        recipe = self._recipes.recipes[use.recipe]
        rules = self._rules.get(recipe.make)
        if rules is None or not recipe.targets or not self._is_below(text, rules):
            return
        needed = rules.needed(recipe.targets, order_only=False)
        if text in needed or text in rules.makefiles or self._runs_always(needed, rules):
            return
        self._add(MISSING_INPUT, text, recipe, None, use, NONE)

    def _is_below(self, text: str, rules: Rules) -> bool:
        """Whether a file is of the project: below where the build, or this make, began."""
        root = self._recipes.image.attributes.get("source_root", "") or str(rules.directory)
        return any(PurePosixPath(text).is_relative_to(each) for each in (root, *rules.roots))

    @staticmethod
    def _runs_always(needed: Iterable[str], rules: Rules) -> bool:
        """Whether a target is made in every run: it needs a phony one, or one that is not there."""
        known = (rules.by_path.get(path) for path in needed)
        return any(
            rule is not None
            and (rule.is_phony or (rule.is_target and not lexists(rules.path(rule.name))))
            for rule in known
        )

    def _look_at_writers(self, text: str, writers: list[Use]) -> None:
        first: dict[int, Use] = {}
        for use in writers:
            first.setdefault(use.recipe, use)
        own = list(first.values())
        for at, b in enumerate(own):
            for a in own[:at]:
                pair = self._pair(a.recipe, b.recipe)
                if pair is None:
                    continue
                one, other, rules = pair
                if not self._is_ordered_at_all(text, one, other, rules):
                    self._add(TWO_WRITERS, text, other, one, b, a.execution)

    @staticmethod
    def _is_ordered_at_all(text: str, one: Recipe, other: Recipe, rules: Rules) -> bool:
        after_one = rules.needed(other.targets, order_only=True) - other.targets
        after_other = rules.needed(one.targets, order_only=True) - one.targets
        return bool(after_one & one.targets or after_other & other.targets or text in after_one)

    # ---- faults ----

    def _add(
        self, name: str, text: str, reader: Recipe, writer: Recipe | None, use: Use, by: int
    ) -> None:
        self._found[name, text, reader.make].append((reader, writer, use, by))

    def _fault(self, key: tuple[str, str, int]) -> Fault:
        name, text, make = key
        rules, found = self._rules[make], self._found[key]
        named = {rules.path(each): each for each in rules.rules}
        targets = sorted({_first(reader, named) for reader, *_ in found})
        reader, writer, use, by = min(found, key=lambda each: (_first(each[0], named), each[2]))
        made_for = () if writer is None else tuple(sorted(named.get(p, p) for p in writer.targets))
        needed = named.get(text) or relpath(text, rules.directory)
        if name == TWO_WRITERS or (name == MISSING_ORDER and text not in named):
            needed = made_for[0]
        fixed = [_first(reader, named)] if name == TWO_WRITERS else targets
        is_input = text not in rules.needed(reader.targets, order_only=False)
        remedy = _remedy(fixed, needed, rules, is_input=is_input and name != TWO_WRITERS)
        makefile = rules.makefile or next(iter(sorted(rules.makefiles)), "")
        return Fault(
            name, text, str(rules.directory), makefile, tuple(targets), made_for, use.execution,
            by, remedy,
        )  # fmt: skip


def _remedy(targets: Iterable[str], needed: str, rules: Rules, *, is_input: bool) -> str:
    """Return the line that repairs a fault, as the makefile has it."""
    if rules.tool != NINJA:
        return f"{' '.join(targets)}: {needed}"
    # of what a dependency file names, only the order is missing
    return f"build {' '.join(targets)}: ... {'|' if is_input else '||'} {needed}"


def _first(recipe: Recipe, named: Mapping[str, str]) -> str:
    """Return the name of the first target of a recipe."""
    return min(named.get(path, path) for path in recipe.targets)
