# SPDX-License-Identifier: Apache-2.0
"""An image -> its runs of make and ninja, their recipes, and for which targets these ran.

A recipe is what one run of make ran for one target: the children of make, with all below them up
to the next make; ninja counts as a make. It is for the targets that it wrote, or of ninja for those
of the edge with its command; a child that wrote only files which were gone at the end belongs to
the recipe that read them. All other recipes are for targets that nobody knows, and nothing is said
about them. A process that outlives its recipe, such as the server of sccache, works for others too:
it and all below it belong to none.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.depend.pipe_names import find_tokens

from etrace.query.files import BITS, READ, WRITE
from etrace.query.rows.records import Records
from etrace.rules.goals import BUILDERS
from etrace.rules.rule import Rules
from etrace.spec.database import ACCESS, EXISTS, NONE, file_type

MAKE, NINJA = "make", "ninja"
#: `sh -c COMMAND`
N_SHELL_WORDS = 3
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
    uses: dict[int, int] = field(default_factory=dict)


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
        self._by_child: dict[int, int] = {}
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

    def find_targets(self, rules: Mapping[int, Rules]) -> None:
        """Find the targets of recipes by the rules of their makes."""
        self._find_written(rules)
        self._find_by_temporary()

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
            if of_command := known.by_command.get(self._command(recipe)):
                recipe.targets = of_command
                continue
            recipe.targets = frozenset(
                path for path in written[number]
                if (rule := known.by_path.get(path)) is not None and rule.is_target
            )  # fmt: skip

    def _command(self, recipe: Recipe) -> str:
        """Return what the tool gave the shell; empty when it started something else."""
        row = recipe.row
        while row < len(self._upid) and self._upid[row] == self._upid[recipe.row]:
            words = self.argv(row)
            if len(words) == N_SHELL_WORDS and words[1] == b"-c":
                return os.fsdecode(words[2])
            row += 1
        return ""

    def _find_by_temporary(self) -> None:
        """Give a recipe's line that wrote only files that are gone the target of their reader."""
        readers: dict[int, set[frozenset[str]]] = defaultdict(set)
        for path, uses in self.uses.items():
            if self.is_there(path):
                continue
            # of more than one reader's targets, none is taken
            of_make: dict[int, set[frozenset[str]]] = defaultdict(set)
            for use in uses:
                other = self.recipes[use.recipe]
                own = of_make[other.make]
                if other.targets and use.access & READ and len(own) <= 1:
                    own.add(other.targets)
            for writer in uses:
                recipe = self.recipes[writer.recipe]
                if writer.access & WRITE and not recipe.targets:
                    readers[writer.recipe] |= of_make[recipe.make]
        for number, targets in readers.items():
            if len(targets) == 1:
                self.recipes[number].targets = next(iter(targets))

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
