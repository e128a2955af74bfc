# SPDX-License-Identifier: Apache-2.0
"""The processes of an image -> the targets of make and ninja, and which one each belongs to.

The outputs of the rule, where the rules are known (etrace/rules/declared.py) or ninja's log has the
command. Else what the command line asks for when it names one goal. What make runs before it has
read its makefiles is for no goal: the commands of an execution that starts make again in the same
process, and those of `$(shell)`, whose output make itself reads. Everything below a command is for
the same target, up to the next make or ninja. Reasons: docs/decisions/0055-targets.md.
"""

from __future__ import annotations

import os
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from libetrace.image.file import NewTable
from libetrace.image.header import group_names

from etrace.compilers.regular_file import read_regular
from etrace.errors import EtraceError
from etrace.figures import count
from etrace.nfsdb.owned import is_captured
from etrace.postprocess.run import Work, product
from etrace.query.rows.records import Records
from etrace.query.rows.targets import GOAL, OUTPUTS
from etrace.query.totals import elapsed_ns
from etrace.rules import stored
from etrace.rules.attribution import find_targets
from etrace.rules.declared import Asked, ask
from etrace.rules.goals import (
    MAX_LOG_BYTES,
    NAME,
    NINJA,
    Job,
    find_edges,
    find_goals,
    read_log,
)
from etrace.rules.line_texts import shell_command
from etrace.rules.recipes import Recipe, Recipes
from etrace.rules.rule import Rules
from etrace.spec.database import NONE

#: directories in which a configure run tries things: of cmake, meson, autoconf, waf, SCons, qmake;
#: each removes them, so nobody misses what ninja did there
PROBES = re.compile(
    rb"(?:.*/)?(?:CMakeFiles|meson-private|__CMake_compiler_info__|conftest[^/]*|conf\d+[^/]*"
    rb"|\.conf_check_[^/]*|\.sconf_temp|config\.tests)(?:/.*)?",
    re.DOTALL,
)
NS = 1_000_000_000


class TargetFinder:
    """Goes through the recipes of one image in order of time: the outer ones come first."""

    def __init__(
        self, recipes: Recipes, rules: Mapping[int, Rules], say: Callable[[str], None]
    ) -> None:
        """Take recipes whose targets were found by the rules of their makes."""
        self._recipes, self._rules, self._say = recipes, rules, say
        self._image = recipes.image
        #: columns of `targets`: tool, kind, outer, and where its names begin
        self._found = array("I"), bytearray(), array("i"), array("Q", [0])
        self._names: list[bytes] = []
        #: by recipe; the last one is that of no recipe
        self._target = [NONE] * (len(recipes.recipes) + 1)
        #: strings that response files held, by upid
        self._contents: dict[int, list[int]] = defaultdict(list)
        if "response_files" in self._image.tables:
            table = self._image["response_files"]
            for upid, content in zip(table["upid"], table["content"], strict=True):
                self._contents[upid].append(content)
        self._unread: dict[bytes, None] = {}

    def tables(self, number: Callable[[bytes], int]) -> list[NewTable]:
        """Return the tables of targets; `number` gives the row of a string."""
        for make, own in self._recipes.of_make.items():
            self._add_targets(make, own)
        if self._unread:
            first, n_more = next(iter(self._unread)).decode(errors="replace"), len(self._unread) - 1
            subject = f"{first} and {n_more:,} more are" if n_more else f"{first} is"
            self._say(f"{subject} gone or not a log of ninja 1.11 to 1.13: targets unknown")
        of_row = self._recipes.of_row
        return [
            product("targets", *self._found),
            product("target_names", array("I", map(number, self._names))),
            product("execution_targets", array("i", map(self._target.__getitem__, of_row))),
        ]

    def _add(self, make: int, kind: int, outer: int, names: Sequence[bytes]) -> int:
        """Add a target and return its row."""
        self._names += names
        for column, value in zip(self._found, (make, kind, outer, len(self._names)), strict=True):
            column.append(value)
        return len(self._found[0]) - 1

    def _add_targets(self, make: int, own: Sequence[Recipe]) -> None:
        """Add what an execution of make or ninja ran recipes for."""
        recipes, builder = self._recipes, self._recipes.builder(make)
        outer = self._target[recipes.of_row[make]]
        goals, goal = set(find_goals(builder, recipes.argv(make))), outer
        if len(goals) == 1 and not any(map(recipes.is_make, recipes.process(make)[1:])):
            goal = self._add(make, GOAL, outer, list(goals))
        edges = self._edges(make, own) if builder is NINJA else {}
        known: dict[tuple[bytes, ...], int] = {}
        for recipe in own:
            names = edges.get(recipe.row) or self._by_rules(recipe)
            if names and names not in known:
                known[names] = self._add(make, OUTPUTS, outer, names)
            # what make runs for itself is for no goal of its own
            otherwise = outer if recipe.row in recipes.functions else goal
            self._target[recipes.of_row[recipe.row]] = known.get(names, otherwise)

    def _by_rules(self, recipe: Recipe) -> tuple[bytes, ...]:
        """Return the targets of a recipe as their makefile has them."""
        names = self._rules[recipe.make].names if recipe.targets else {}
        return tuple(map(os.fsencode, sorted(names[path] for path in recipe.targets)))

    def _edges(self, make: int, own: Sequence[Recipe]) -> Mapping[int, tuple[bytes, ...]]:
        """Return the outputs of recipes by their row, as ninja's log has them."""
        log_path = self._log_path(make)
        text = read_regular(log_path, MAX_LOG_BYTES) if log_path else None
        log = None if text is None else read_log(text)
        if log is None:
            if log_path and not PROBES.fullmatch(log_path):
                self._unread[log_path] = None
            return {}
        jobs = [job for recipe in own if (job := self._job(recipe)) is not None]
        start_ns = self._image["executions"]["start_ns"][make]
        return {row: edge.outputs for row, edge in find_edges(log, jobs, start_ns).items()}

    def _log_path(self, make: int) -> bytes:
        """Return the log that an execution of ninja opened; empty for none, or several."""
        opened = self._image["opens"]["path"]
        rows = {opened[i] for i in self._image["executions"].span("opens.start", make)}
        paths = {self._image.path_string(path) for path in rows}
        logs = {path for path in paths if path.rpartition(b"/")[2] == NAME}
        return logs.pop() if len(logs) == 1 else b""

    def _job(self, recipe: Recipe) -> Job | None:
        """Return the command that ninja started as a recipe, None when it did not succeed."""
        last = self._recipes.process(recipe.row)[-1]
        command = shell_command(self._recipes.words(recipe))
        if command is None or self._image["executions"]["status"][last] != 0:
            return None
        text, responses = os.fsencode(command), self._responses(recipe)
        return Job(recipe.row, text, recipe.start_ns, recipe.end_ns, responses)

    def _responses(self, recipe: Recipe) -> tuple[bytes, ...]:
        """Return what the response files of a recipe held."""
        upid, rows = self._image["executions"]["upid"], self._recipes.rows
        own = {upid[row] for row in rows[self._recipes.of_row[recipe.row]]}
        upids = sorted(own & self._contents.keys())
        found = [text for each in upids for text in self._contents[each]]
        return tuple(dict.fromkeys(map(self._image.string, found)))


TABLES = (*stored.TABLES, *group_names("targets"))
#: of a build: what reading its rules may take; the others wait for `etrace check`
MOST_OF_BUILD, LEAST_SECONDS = 0.02, 0.5


NOT_CAPTURED = "no mark shows that you captured this build on this machine"


def _asked(work: Work, recipes: Recipes) -> Asked:
    """Return the rules of a build that this user captured here; of another one nothing runs."""
    if not work.is_reading_rules:
        return Asked()
    if not is_captured(work.image):
        return Asked(unknown=dict.fromkeys(recipes.of_make, NOT_CAPTURED))
    seconds = max(LEAST_SECONDS, MOST_OF_BUILD * elapsed_ns(work.image) / NS)
    try:
        return ask(recipes, runs_shell=work.is_shell_allowed, seconds=seconds)
    except EtraceError as error:
        return Asked(unknown=dict.fromkeys(recipes.of_make, error.message))


@dataclass(frozen=True, slots=True)
class TargetPhase:
    """The phase."""

    name: str = "targets"
    tables: tuple[str, ...] = TABLES
    inputs: tuple[str, ...] = ("is_reading_rules", "is_shell_allowed")

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables of rules and of targets."""
        recipes = Recipes(Records(work.image))
        asked = _asked(work, recipes)
        if asked.rules:
            find_targets(recipes, asked.rules)
        finder = TargetFinder(recipes, asked.rules, work.say)
        number = work.strings.number
        return [*stored.Writer(number).write(asked), *finder.tables(number)]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        target_of = tables[-1].columns[0].data
        n_known = len(target_of) - target_of.count(NONE)
        n_targets = len(set(target_of) - {NONE})
        return f"{count(n_known, 'execution')} for {count(n_targets, 'target')}"


PHASE = TargetPhase()
