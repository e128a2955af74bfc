# SPDX-License-Identifier: Apache-2.0
"""An image -> its runs of make and ninja, and the recipes that these ran.

A recipe is what one run of make ran for one target: the children of make, with all below them up
to the next make; ninja counts as a make. For which targets: attribution.py. A process that outlives
its recipe, such as the server of sccache, works for others too: it and all below it belong to none.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.depend.pipe_names import find_tokens

from etrace.query.files import BITS, READ, WRITE
from etrace.query.rows.records import Records
from etrace.rules import goals
from etrace.rules.goals import BUILDERS, Builder
from etrace.rules.line_texts import Lines, shell_command
from etrace.rules.rule import Rules
from etrace.spec.builders import MAKE, NINJA
from etrace.spec.database import ACCESS, EXISTS, NONE, file_type
from etrace.spec.path_style import style_of

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
    #: the child of make that it began with, a row of `executions`, and the end of that process
    row: int
    end_ns: int
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
        self._commands: dict[int, str] = {}
        self._place()

    # ---- processes ----

    @cached_property
    def _builders(self) -> Mapping[int, Builder]:
        if style_of(self.image.attributes).is_windows:
            return {}
        names = {
            path: self.image.path_string(path).rpartition(b"/")[2]
            for path in set(self._binary) - {NONE}
        }
        return {path: BUILDERS[name] for path, name in names.items() if name in BUILDERS}

    def is_make(self, row: int) -> bool:
        """Whether an execution ran make or ninja."""
        return self._binary[row] in self._builders

    def tool(self, row: int) -> str:
        """Return "make" or "ninja", of an execution of one of them."""
        return NINJA if self.builder(row) is goals.NINJA else MAKE

    def builder(self, row: int) -> Builder:
        """Return how the command line of a make or ninja is read."""
        return self._builders[self._binary[row]]

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
            above, is_done[row] = self.above(row), True
            if above == NONE or not is_done[above]:
                continue
            around = self.of_row[above]
            if self.is_make(above) and self._upid[above] != self._upid[row]:
                self.of_row[row] = self._new(row, above)
            elif around != NONE:
                goes_on = self._end[self._upid[row]] > self.recipes[around].end_ns + LATE_NS
                self.of_row[row] = NONE if goes_on else around

    def _new(self, row: int, make: int) -> int:
        outer = self.of_row[make]
        level = 1 if outer == NONE else self._levels[outer] + 1
        if level > MAX_LEVELS:  # as at the top: no recipe around it is known
            outer, level = NONE, 1
        self._levels.append(level)
        self.recipes.append(Recipe(make, outer, self._start[row], row, self._end[self._upid[row]]))
        return len(self.recipes) - 1

    @cached_property
    def of_make(self) -> Mapping[int, Sequence[Recipe]]:
        """Recipes by the execution of make or ninja that ran them, in order of time."""
        found: dict[int, list[Recipe]] = defaultdict(list)
        for each in self.recipes:
            found[each.make].append(each)
        return found

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

    # ---- commands ----

    @cached_property
    def functions(self) -> frozenset[int]:
        """Recipes that are `$(shell)`, by row: make itself read what they wrote.

        Two that read what the other wrote share the pipe of a jobserver.
        """
        found = set[int]()
        for make, own in self.of_make.items():
            if self.tool(make) == MAKE:
                upid = self._upid[make]
                # what the process wrote before it was make, too
                read_by = self._readers(row for row in (make - 1, make) if self._upid[row] == upid)
                found.update(
                    each.row for each in own
                    if self._upid[each.row] not in read_by
                    and upid in self._readers(self.process(each.row))
                )  # fmt: skip
        return frozenset(found)

    def _readers(self, rows: Iterable[int]) -> set[int]:
        """Return the processes that read what executions wrote into pipes."""
        read_by, span = self.image["pipe_readers"]["execution"], self.image["executions"].span
        return {self._upid[read_by[at]] for row in rows for at in span("readers.start", row)}

    def process(self, row: int) -> range:
        """Return the executions of a process from one of them on."""
        end = row + 1
        while end < len(self._upid) and self._upid[end] == self._upid[row]:
            end += 1
        return range(row, end)

    def argv(self, row: int) -> list[bytes]:
        """Return the arguments of an execution."""
        return list(map(os.fsencode, self.records.argv(row)))

    def words(self, recipe: Recipe) -> list[str]:
        """Return the arguments of what make started; empty when nothing was run."""
        after_copy = self.process(recipe.row)[1:2]
        return self.records.argv(after_copy[0]) if after_copy else []

    def command(self, recipe: Recipe) -> str:
        """Return what the tool gave the shell, or started itself; empty when nothing was run."""
        if recipe.row not in self._commands:
            words = self.words(recipe)
            self._commands[recipe.row] = shell_command(words) or " ".join(words)
        return self._commands[recipe.row]

    def lines(self, rules: Rules) -> Lines:
        """Return the lines of the recipes of a make, which are read once."""
        if id(rules) not in self._lines:
            self._lines[id(rules)] = Lines(rules)
        return self._lines[id(rules)]

    def goals(self, make: int, rules: Rules) -> list[str]:
        """Return the names of the goals of a make or ninja; none when they are not known."""
        named = goals.find_goals(self.builder(make), self.argv(make))
        return list(map(os.fsdecode, named)) or [*filter(None, [rules.default_goal])]

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
