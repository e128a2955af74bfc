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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from libetrace.image.file import Image, NewTable
from libetrace.image.header import group_names

from etrace.compilers.regular_file import read_regular
from etrace.errors import EtraceError
from etrace.figures import count
from etrace.nfsdb.owned import is_captured
from etrace.postprocess.run import Work, product
from etrace.query.rows.records import Records
from etrace.rules import stored
from etrace.rules.declared import Asked, ask
from etrace.rules.goals import (
    BUILDERS,
    MAX_LOG_BYTES,
    NAME,
    NINJA,
    Job,
    find_edges,
    find_goals,
    read_log,
)
from etrace.rules.recipes import Recipes
from etrace.spec.database import NONE
from etrace.spec.path_style import style_of

#: directories in which a configure run tries things: of cmake, meson, autoconf, waf, SCons, qmake;
#: each removes them, so nobody misses what ninja did there
PROBES = re.compile(
    rb"(?:.*/)?(?:CMakeFiles|meson-private|__CMake_compiler_info__|conftest[^/]*|conf\d+[^/]*"
    rb"|\.conf_check_[^/]*|\.sconf_temp|config\.tests)(?:/.*)?",
    re.DOTALL,
)
#: values of the column `kind`
OUTPUTS, GOAL = 0, 1
#: `sh -c COMMAND`
N_SHELL_WORDS = 3
NS = 1_000_000_000


@dataclass(slots=True)
class Found:
    """The tables `targets` and `target_names`, as far as they are made."""

    tool: array[int]
    kind: bytearray
    outer: array[int]
    starts: array[int]
    names: list[bytes]

    def add(self, tool: int, kind: int, outer: int, names: Sequence[bytes]) -> int:
        """Add a target and return its row."""
        self.tool.append(tool)
        self.kind.append(kind)
        self.outer.append(outer)
        self.names += names
        self.starts.append(len(self.names))
        return len(self.kind) - 1


class TargetFinder:
    """Goes through the processes of one image in the order of their upids: parents come first."""

    def __init__(
        self,
        image: Image,
        say: Callable[[str], None],
        names: Mapping[int, tuple[str, ...]] | None = None,
    ) -> None:
        """Take what rules say: the targets, by the first row of the process that make started."""
        self._image, self._say = image, say
        self._names = names or {}
        self._table = image["executions"]
        self._upid: list[int] = self._table["upid"].tolist()
        self._start: list[int] = self._table["start_ns"].tolist()
        self._builders = self._find_builders()
        self._first, self._end, self._children = self._find_processes()
        self.found = Found(array("I"), bytearray(), array("i"), array("Q", [0]), [])
        self.target_of = array("i", [NONE]) * len(self._upid)
        self._contents = self._find_contents()
        self._goal: dict[int, int] = {}
        self._edge: dict[int, int] = {}
        self._unread: dict[bytes, None] = {}

    def _find_builders(self) -> dict[int, bytes]:
        """Return the executions of make and ninja, and the names of their programs."""
        if style_of(self._image.attributes).is_windows:
            return {}
        names: dict[int, bytes] = {}
        for path in set(self._table["binary"].tolist()) - {NONE}:
            name = self._image.path_string(path).rpartition(b"/")[2]
            if name in BUILDERS:
                names[path] = name
        binary = self._table["binary"].tolist()
        return {row: names[path] for row, path in enumerate(binary) if path in names}

    def _find_processes(self) -> tuple[list[int], dict[int, int], dict[int, list[int]]]:
        """Return the first row of each row's process, its end by that, and children by parent."""
        first, end = [], {}
        children: dict[int, list[int]] = {}
        parent = self._table["parent"].tolist()
        at = 0
        for row, upid in enumerate(self._upid):
            if upid != self._upid[at]:
                at = row
            if row == at and parent[row] != NONE:
                children.setdefault(parent[row], []).append(row)
            first.append(at)
            end[at] = row + 1
        return first, end, children

    def run(self) -> None:
        """Find the target of each execution."""
        parent = self._table["parent"].tolist()
        for row in range(len(self._upid)):
            first = self._first[row]
            if row != first:
                self.target_of[row] = self.target_of[first]
            elif NONE < parent[row] < row:
                self.target_of[row] = self._below(parent[row], row)
            if row in self._builders:
                self._add_targets(row)
        if self._unread:
            self._say(unread_logs(list(self._unread)))

    def _below(self, parent: int, process: int) -> int:
        """Return the target of a process that an execution started."""
        edge = self._edge.get(process)
        if edge is not None:
            return edge
        goal = self._goal.get(parent)
        if goal is None or self._is_of_shell_function(process, parent):
            return self.target_of[parent]
        return goal

    def _is_of_shell_function(self, process: int, parent: int) -> bool:
        """Return whether make reads what a child writes; ninja reads what all write."""
        if BUILDERS[self._builders[parent]] is NINJA:
            return False
        readers = self._image["pipe_readers"]["execution"]
        start = self._table["readers.start"]
        return any(
            self._first[readers[at]] == self._first[parent]
            for at in range(start[process], start[self._end[process]])
        )

    # ---- one make or ninja ----

    def _add_targets(self, row: int) -> None:
        """Add what an execution of make or ninja works on."""
        builder, outer = BUILDERS[self._builders[row]], self.target_of[row]
        children = self._children.get(row, [])
        if not children:
            return
        goals = set(find_goals(builder, self._argv(row)))
        if len(goals) == 1 and not self._starts_again(row):
            self._goal[row] = self.found.add(row, GOAL, outer, list(goals))
        if builder is NINJA:
            self._add_edges(row, outer, children)
        self._add_rules(row, outer, children)

    def _starts_again(self, row: int) -> bool:
        """Return whether the process runs a make or ninja afterwards: the makefiles were remade."""
        return any(after in self._builders for after in range(row + 1, self._end[self._first[row]]))

    def _add_edges(self, row: int, outer: int, children: Sequence[int]) -> None:
        log_path = self._log_path(row)
        text = read_regular(log_path, MAX_LOG_BYTES) if log_path else None
        log = None if text is None else read_log(text)
        if log is None:
            if log_path and not PROBES.fullmatch(log_path):
                self._unread[log_path] = None
            return
        jobs = [job for child in children if (job := self._job(child)) is not None]
        for process, edge in find_edges(log, jobs, self._start[row]).items():
            self._edge[process] = self.found.add(row, OUTPUTS, outer, edge.outputs)

    def _add_rules(self, row: int, outer: int, children: Sequence[int]) -> None:
        known: dict[tuple[str, ...], int] = {}
        for process in children:
            names = self._names.get(process)
            if not names or process in self._edge:
                continue
            if names not in known:
                known[names] = self.found.add(row, OUTPUTS, outer, list(map(os.fsencode, names)))
            self._edge[process] = known[names]

    def _log_path(self, row: int) -> bytes:
        """Return the log that an execution of ninja opened; empty for none, or several."""
        opened = self._image["opens"]["path"]
        rows = {opened[i] for i in self._table.span("opens.start", row)}
        paths = {self._image.path_string(path) for path in rows}
        logs = {path for path in paths if path.rpartition(b"/")[2] == NAME}
        return logs.pop() if len(logs) == 1 else b""

    def _job(self, process: int) -> Job | None:
        """Return the command that ninja started as a process, None when it did not succeed."""
        last, command = self._end[process] - 1, self._argv(process + 1)
        if last == process or self._table["status"][last] != 0:
            return None
        if len(command) != N_SHELL_WORDS or command[1] != b"-c":
            return None
        end_ns = self._start[last] + self._table["elapsed_ns"][last]
        return Job(process, command[2], self._start[process], end_ns, self._responses(process))

    def _argv(self, row: int) -> list[bytes]:
        if row >= len(self._upid):
            return []
        strings = self._image["arguments"]["string"]
        return [self._image.string(strings[i]) for i in self._table.span("argv.start", row)]

    def _responses(self, process: int) -> tuple[bytes, ...]:
        """Return what the response files of a process and its children held."""
        upids = {self._upid[process]}
        for row in range(process, self._end[process]):
            upids |= {self._upid[child] for child in self._children.get(row, ())}
        found = [text for upid in sorted(upids) for text in self._contents.get(upid, ())]
        return tuple(dict.fromkeys(map(self._image.string, found)))

    def _find_contents(self) -> Mapping[int, list[int]]:
        """Return the strings that response files held by upid."""
        contents: dict[int, list[int]] = {}
        if "response_files" in self._image.tables:
            table = self._image["response_files"]
            for upid, content in zip(table["upid"], table["content"], strict=True):
                contents.setdefault(upid, []).append(content)
        return contents


def unread_logs(paths: Sequence[bytes]) -> str:
    """Report logs of ninja that cannot be read, in one line."""
    first, n_more = paths[0].decode(errors="replace"), len(paths) - 1
    subject = f"{first} and {n_more:,} more are" if n_more else f"{first} is"
    return f"{subject} gone or not a log of ninja 1.11 to 1.13: targets unknown"


TABLES = (*stored.TABLES, *group_names("targets"))
#: of a build: what reading its rules may take; the others wait for `etrace check`
MOST_OF_BUILD, LEAST_SECONDS = 0.02, 0.5


NOT_CAPTURED = "no mark shows that you captured this build on this machine"


def _asked(work: Work, recipes: Recipes) -> Asked:
    """Return the rules of a build that this user captured here; of another one nothing runs."""
    if not work.is_reading_rules:
        return Asked()
    if not is_captured(work.image):
        return Asked(unknown=dict.fromkeys(recipes.makes, NOT_CAPTURED))
    table = work.image["executions"]
    ends = (start + own for start, own in zip(table["start_ns"], table["elapsed_ns"], strict=True))
    seconds = max(LEAST_SECONDS, MOST_OF_BUILD * max(ends, default=0) / NS)
    try:
        return ask(recipes, runs_shell=work.is_shell_allowed, seconds=seconds)
    except EtraceError as error:
        return Asked(unknown=dict.fromkeys(recipes.makes, error.message))


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
        finder = TargetFinder(work.image, work.say, _names(recipes, asked))
        finder.run()
        found = finder.found
        names = array("I", map(work.strings.number, found.names))
        return [
            *stored.Writer(work.strings.number).write(asked),
            product("targets", found.tool, found.kind, found.outer, found.starts),
            product("target_names", names),
            product("execution_targets", finder.target_of),
        ]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        target_of = tables[-1].columns[0].data
        n_known = len(target_of) - target_of.count(NONE)
        n_targets = len(set(target_of) - {NONE})
        return f"{count(n_known, 'execution')} for {count(n_targets, 'target')}"


def _names(recipes: Recipes, asked: Asked) -> Mapping[int, tuple[str, ...]]:
    """Return the targets of recipes as their makefile has them, by the process of each."""
    if not asked.rules:
        return {}
    recipes.find_targets(asked.rules)
    return {
        each.row: tuple(sorted(asked.rules[each.make].names[path] for path in each.targets))
        for each in recipes.recipes
        if each.targets
    }


PHASE = TargetPhase()
