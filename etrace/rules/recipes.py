# SPDX-License-Identifier: Apache-2.0
"""An image -> its runs of make and ninja, their recipes, and for which targets these ran.

A recipe is what one run of make ran for one target: the children of make, with all below them up
to the next make; ninja counts as a make. It is for the targets that it wrote, or of ninja for those
of the edge with its command. A command that can be a line of one rule only is for the target of
that, phony or not. The lines of a recipe follow one another, and what a line wrote beside the
targets, another line of the recipe reads. All other recipes are for targets that nobody knows, and
nothing is said about them. A process that outlives its recipe, such as the server of sccache, works
for others too: it and all below it belong to none.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.depend.pipe_names import find_tokens

from etrace.query.files import BITS, READ, WRITE
from etrace.query.rows.records import Records
from etrace.rules import learned
from etrace.rules.goals import BUILDERS
from etrace.rules.lines import Lines
from etrace.rules.rule import Rules
from etrace.spec.database import ACCESS, EXISTS, NONE, file_type

MAKE, NINJA = "make", "ninja"
#: `sh -c COMMAND`, or with other flags of a shell (.SHELLFLAGS)
N_SHELL_WORDS = 3
_RUNS = re.compile(r"-\w*c")
#: of makes within makes
MAX_LEVELS = 64
#: a process may end so much later than what waits for it
LATE_NS = 100_000_000


class Use(NamedTuple):
    """An open of a file by a recipe; times in ns, executions by row."""

    recipe: int
    access: int
    begin_ns: int
    end_ns: int
    execution: int


@dataclass(slots=True)
class Recipe:
    """What one make ran for targets, by path; empty when they are not known."""

    make: int
    #: recipe of the make that this make belongs to, NONE at the top
    outer: int
    start_ns: int
    #: the child of make that it began with, a row of `executions`
    row: int
    targets: frozenset[str] = frozenset()
    #: of which it can be a line, when that is known of the command alone; it is for one of them
    shown: frozenset[str] = frozenset()
    uses: dict[int, int] = field(default_factory=dict)

    @property
    def possible(self) -> frozenset[str]:
        """Return all that it may be for; empty when its targets are not known."""
        is_more = self.targets and not self.shown <= self.targets
        return self.targets | self.shown if is_more else self.targets


class Recipes:
    """The recipes of one image."""

    def __init__(self, records: Records) -> None:
        self.records, self.image = records, records.image
        table = self.image["executions"]
        self._upid, self._binary = table["upid"].tolist(), table["binary"].tolist()
        self._parent = table["parent"].tolist()
        self._start = table["start_ns"].tolist()
        ends = (start + own for start, own in zip(self._start, table["elapsed_ns"], strict=True))
        #: of the last execution of each process
        self._end = {upid: int(end) for upid, end in zip(self._upid, ends, strict=True)}
        self._owners = find_thread_owners(self.image)
        self.recipes: list[Recipe] = []
        self._levels: list[int] = []
        #: number of the recipe of each execution, NONE for none
        self.of_row = [NONE] * len(self._upid)
        self._lines: dict[int, Lines] = {}
        self._place()

    # ---- processes ----

    @cached_property
    def _make_programs(self) -> frozenset[int]:
        paths = set(self._binary) - {NONE}
        return frozenset(
            path for path in paths if self.image.path_string(path).rpartition(b"/")[2] in BUILDERS
        )

    def is_make(self, row: int) -> bool:
        """Whether an execution ran make or ninja."""
        return self._binary[row] in self._make_programs

    def tool(self, row: int) -> str:
        """Return "make" or "ninja", of an execution of one of them."""
        name = self.image.path_string(self._binary[row]).rpartition(b"/")[2]
        return MAKE if name.endswith(b"make") else NINJA

    def above(self, row: int) -> int:
        """Return the execution that this one goes on from or that started it, NONE for none."""
        if row and self._upid[row - 1] == self._upid[row]:
            return row - 1
        owner = int(self._owners[row])
        return owner if owner != row else int(self._parent[row])

    def _place(self) -> None:
        """Find the recipe of each execution; a make itself belongs to the recipe around it."""
        order = sorted(range(len(self._upid)), key=lambda row: (self._start[row], row))
        is_done = bytearray(len(order))
        for row in order:
            above = self.above(row)
            if above != NONE and is_done[above]:
                if self.is_make(above) and self._upid[above] != self._upid[row]:
                    self.of_row[row] = self._new(row, above)
                elif not self._outlives(row, self.of_row[above]):
                    self.of_row[row] = self.of_row[above]
            is_done[row] = True

    def _outlives(self, row: int, recipe: int) -> bool:
        """Whether a process goes on when the recipe that it began in has ended."""
        if recipe == NONE:
            return False
        ends = self._end[self._upid[self.recipes[recipe].row]]
        return self._end[self._upid[row]] > ends + LATE_NS

    def _new(self, row: int, make: int) -> int:
        outer = self.of_row[make]
        level = 1 if outer == NONE else self._levels[outer] + 1
        if level > MAX_LEVELS:  # as at the top: no recipe around it is known
            outer, level = NONE, 1
        self._levels.append(level)
        self.recipes.append(Recipe(make, outer, self._start[row], row))
        return len(self.recipes) - 1

    @cached_property
    def makes(self) -> list[int]:
        """Executions of make and ninja that ran recipes, in order of time."""
        return list(dict.fromkeys(each.make for each in self.recipes))

    @cached_property
    def makes_with_recipes(self) -> frozenset[int]:
        """The same as a set."""
        return frozenset(self.makes)

    # ---- files ----

    @cached_property
    def uses(self) -> Mapping[int, list[Use]]:
        """Files, as rows of `paths` -> their uses by recipes, in order of time."""
        opens, found = self.image["opens"], dict[int, list[Use]]()
        tokens = find_tokens(self.image)
        columns = (opens[name] for name in ("execution", "path", "mode", "open_ns", "close_ns"))
        for row, path, mode, begin, end in zip(*columns, strict=True):
            recipe = self.of_row[row]
            if recipe == NONE or self.is_make(row) or stat.S_ISDIR(file_type(mode)):
                continue
            if path in tokens:
                continue
            access = BITS[mode & ACCESS]
            found.setdefault(path, []).append(Use(recipe, access, begin, max(begin, end), row))
            own = self.recipes[recipe].uses
            own[path] = own.get(path, 0) | access
        for use, path in self._runs_of(found):
            found[path].append(use)
        for uses in found.values():
            uses.sort(key=lambda use: use.begin_ns)
        return found

    def _runs_of(self, used: Mapping[int, list[Use]]) -> Iterator[tuple[Use, int]]:
        """Yield executions of programs that recipes wrote: they read them."""
        writers = dict[int, set[int]]()
        for row, path in enumerate(self._binary):
            recipe = self.of_row[row]
            if recipe == NONE or path not in used or self._is_copy(row):
                continue
            if path not in writers:
                writers[path] = {use.recipe for use in used[path] if use.access & WRITE}
            if not writers[path] <= {recipe}:
                began = self.began_ns(row)
                yield Use(recipe, READ, began, began, row), path

    @cached_property
    def rows(self) -> Mapping[int, Sequence[int]]:
        """Executions by the recipe that they belong to."""
        found: dict[int, list[int]] = defaultdict(list)
        for row, number in enumerate(self.of_row):
            found[number].append(row)
        return found

    def began_ns(self, row: int) -> int:
        """Return when an execution began, by the clock of opens: its first one, or about that."""
        opens, span = self.image["opens"]["open_ns"], self.image["executions"].span
        own = min((int(opens[i]) for i in span("opens.start", row) if opens[i]), default=0)
        return own or self._start[row] + self._clock_ns

    @cached_property
    def _clock_ns(self) -> int:
        """When the trace began, by the clock of opens; not earlier than that."""
        opens = self.image["opens"]
        pairs = zip(opens["open_ns"], opens["execution"], strict=True)
        return min((int(time) - self._start[row] for time, row in pairs if time), default=0)

    def _is_copy(self, row: int) -> bool:
        """Whether an execution is that of a new process which has not executed anything yet."""
        above = self.above(row)
        return above != NONE and (self._binary[above], self._upid[above] == self._upid[row]) == (
            self._binary[row], False,
        )  # fmt: skip

    def is_there(self, path: int) -> bool:
        """Whether a file was there when the trace was parsed."""
        return bool(self.records.file_kinds.temporaries.mode_of(path) & EXISTS)

    # ---- targets ----

    def find_targets(self, rules: Mapping[int, Rules]) -> None:
        """Find the targets of recipes by the rules of their makes."""
        self._find_written(rules)
        self._find_by_text(rules)
        self._find_by_sequence(rules)
        self._find_by_reader(rules)

    def lines(self, rules: Rules) -> Lines:
        """Return the lines of the recipes of a make, which are read once."""
        if id(rules) not in self._lines:
            self._lines[id(rules)] = Lines(rules)
        return self._lines[id(rules)]

    def command(self, recipe: Recipe) -> str:
        """Return what the tool gave the shell, or started itself; empty when nothing was run."""
        row = recipe.row + 1  # after the copy of make
        if row >= len(self._upid) or self._upid[row] != self._upid[recipe.row]:
            return ""
        words = self.records.argv(row)
        is_shell = len(words) >= N_SHELL_WORDS and words[0].endswith("sh")
        return words[-1] if is_shell and _RUNS.fullmatch(words[-2]) else " ".join(words)

    def _find_written(self, rules: Mapping[int, Rules]) -> None:
        written: dict[int, set[str]] = defaultdict(set)
        for path, uses in self.uses.items():
            if not self.is_there(path):
                continue
            text = self.records.path(path)
            for use in uses:
                if use.access & WRITE:
                    written[use.recipe].add(text)
        for number, recipe in enumerate(self.recipes):
            if (known := rules.get(recipe.make)) is None:
                continue
            if known.tool == NINJA and (own := known.by_command.get(self.command(recipe))):
                recipe.targets = own
                continue
            recipe.targets = frozenset(
                path for path in written[number]
                if (rule := known.by_path.get(path)) is not None and rule.is_target
            )  # fmt: skip

    def _find_by_text(self, rules: Mapping[int, Rules]) -> None:
        """Add the target of which a command can be a line, where it is a line of no other rule."""
        for recipe in self.recipes:
            known = rules.get(recipe.make)
            if known is None or known.tool == NINJA or not (text := self.command(recipe)):
                continue
            shown = self.lines(known).shown(text)
            if not shown:
                continue
            recipe.shown = shown
            if len(shown) == 1 or _is_one_rule(known, shown):
                recipe.targets |= shown

    def _find_by_sequence(self, rules: Mapping[int, Rules]) -> None:
        """Give a line the target of the line that ran before or after it, when nothing else ran.

        make runs the next line of a recipe before anything else.
        """
        of_make: dict[int, list[int]] = defaultdict(list)
        for number, recipe in enumerate(self.recipes):
            of_make[recipe.make].append(number)
        for make, numbers in of_make.items():
            if (known := rules.get(make)) is None or known.tool == NINJA:
                continue
            numbers.sort(key=lambda number: self.recipes[number].start_ns)
            places = dict[int, int]()
            pairs = [*self._sequences(numbers)]
            for own, other in reversed(pairs):
                self._follow(own, other, places, self.lines(known), step=-1)
            for other, own in pairs:
                self._follow(own, other, places, self.lines(known), step=1)

    def _sequences(self, numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield two recipes of one make between which, and beside which, it ran nothing."""
        ends = 0
        for a, b in pairwise(numbers):
            began = self.recipes[a].start_ns
            is_alone, end = ends <= began, self._end[self._upid[self.recipes[a].row]]
            ends = max(ends, end)
            if is_alone and end <= self.recipes[b].start_ns:
                yield a, b

    def _follow(
        self, own: int, other: int, places: dict[int, int], lines: Lines, *, step: int
    ) -> None:
        """Give a recipe without targets that of its neighbour, if it can be another line of it."""
        recipe, known = self.recipes[own], self.recipes[other]
        if recipe.targets or len(known.targets) != 1:
            return
        (target,) = known.targets
        if other not in places:
            at = lines.places(self.command(known), target)
            if not at:
                return
            places[other] = at[0] if step < 0 else at[-1]
        possible = [
            at for at in lines.places(self.command(recipe), target)
            if (at - places[other]) * step > 0
        ]  # fmt: skip
        if possible:
            places[own] = max(possible) if step < 0 else min(possible)
            recipe.targets = known.targets

    def _find_by_reader(self, rules: Mapping[int, Rules]) -> None:
        """Give a line that wrote no target that of the only reader of what it wrote.

        A file that is gone at the end is temporary; where it is not, the line must be one of the
        reader's recipe.
        """
        readers: dict[int, set[frozenset[str]]] = defaultdict(set)
        for path, uses in self.uses.items():
            is_there = self.is_there(path)
            # of more than one reader's targets, none is taken
            of_make: dict[int, set[frozenset[str]]] = defaultdict(set)
            for use in uses:
                other = self.recipes[use.recipe]
                own = of_make[other.make]
                if other.targets and use.access & READ and len(own) <= 1:
                    own.add(other.targets)
            for writer in uses:
                recipe = self.recipes[writer.recipe]
                if not writer.access & WRITE or recipe.targets:
                    continue
                known = rules.get(recipe.make)
                readers[writer.recipe] |= {
                    targets for targets in of_make[recipe.make]
                    if not is_there or (known and self._is_line(recipe, targets, known))
                }  # fmt: skip
        for number, targets in readers.items():
            if len(targets) == 1:
                self.recipes[number].targets = next(iter(targets))

    def _is_line(self, recipe: Recipe, targets: Iterable[str], rules: Rules) -> bool:
        if rules.tool == NINJA:
            return False
        lines, text = self.lines(rules), self.command(recipe)
        return any(lines.places(text, target) for target in targets)

    def find_learned(self, rules: Mapping[int, Rules]) -> None:
        """Find the prerequisites of makes that only dependency files name: see learned.py.

        These are the makefiles that recipes wrote beside another target, or that make does not
        make: one that it makes is there when make goes on.
        """
        found: dict[int, set[str]] = defaultdict(set)
        files = frozenset[str]().union(*(each.makefiles for each in rules.values()))
        for path, uses in self.uses.items():
            text = self.records.path(path)
            written = [use for use in uses if use.access & WRITE] if text in files else ()
            for number in self.chain(written[-1].recipe) if written else ():
                recipe = self.recipes[number]
                known = rules.get(recipe.make)
                if known is None or known.tool == NINJA or text not in known.makefiles:
                    continue
                if _is_learned(text, recipe, known):
                    found[id(known)].add(text)
        by_id = {id(each): each for each in rules.values()}
        for key, own in found.items():
            learned.separate(by_id[key], sorted(own))

    # ---- where recipes meet ----

    def chain(self, number: int) -> Iterator[int]:
        """Yield a recipe, then those around it."""
        while number != NONE:
            yield number
            number = self.recipes[number].outer

    def meet(self, a: int, b: int) -> tuple[int, int] | None:
        """Return the recipes of one make that two recipes are or belong to; None when they are one.

        None, too, when they have no make in common: then a script ran one make after the other.
        """
        of_make = {self.recipes[number].make: number for number in self.chain(a)}
        for number in self.chain(b):
            mine = of_make.get(self.recipes[number].make)
            if mine is not None:
                return None if mine == number else (mine, number)
        return None

    def argv(self, row: int) -> list[bytes]:
        """Return the arguments of an execution."""
        return list(map(os.fsencode, self.records.argv(row)))


def _is_one_rule(rules: Rules, targets: frozenset[str]) -> bool:
    """Whether targets are made by one run of one recipe."""
    rule = rules.by_path[min(targets)]
    return targets <= {min(targets), *map(rules.path, rule.also)}


def _is_learned(makefile: str, writer: Recipe, rules: Rules) -> bool:
    """Whether a makefile that a recipe wrote was not there when make read the others first."""
    rule = rules.by_path.get(makefile)
    if rule is None or not (rule.is_target and rule.has_recipe):
        return True
    return not (writer.targets | writer.shown) <= rules.makefiles
