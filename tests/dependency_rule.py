# SPDX-License-Identifier: Apache-2.0
"""docs/dependencies.md in plain Python: an image, rules and a configuration -> dependencies.

Reads the tables of an image itself and follows every path; shares no code with libetrace.depend.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from libetrace.depend.configuration import Config, Rules
from libetrace.image.file import Image

TYPE, FIFO, LINK, CHARACTER, SOCKET = 0x7C, 0x44, 0x68, 0x48, 0x70
SYMLINKED, AWAY, BEGUN = 4, 5, 6
FOREVER = float("inf")


class Rule:
    """What every file of an image depends on, by rules and configuration."""

    def __init__(self, image: Image, config: Config, rules: Rules) -> None:
        self.image, self.config, self.rules = image, config, rules
        self.paths = [os.fsdecode(image.path_string(row)) for row in range(image["paths"].n_rows)]
        self.row = {path: row for row, path in enumerate(self.paths)}
        self.links = list(self._links())
        self.first = self._first_stamp()
        self.build = self._build()

    def dependencies(self, path: int) -> set[int]:
        """Return rows of `paths`: everything that a path depends on."""
        if self._is_own_stop(path):
            return set()
        name = self.paths[path]
        config, rules = self.config, self.rules
        globs = [
            *config.dependency_exclude_patterns,
            *config.additional_module_exclude_patterns,
            *_of(config.additional_module_exclude_pattern_variants, name),
        ]
        stops = {row for row, text in enumerate(self.paths) if _matches(text, globs)}
        stops |= {row for row in range(len(self.paths)) if self._is_own_stop(row)}
        if rules.is_direct:
            stops |= self._modules() - {path}
        excluded = self._excluded(_of(config.exclude_command_variants, name))
        left = Left(stops, excluded, rules.is_ordered, self._has_pipes(name))
        return closure(self.build, [path], left)

    # ---- what is left out ----

    def _is_own_stop(self, path: int) -> bool:
        rules, name = self.rules, self.paths[path]
        if os.fsencode(name) in rules.exclude_paths:
            return True
        globs = [os.fsdecode(glob) for glob in rules.exclude_files]
        return bool(globs) and _matches(name, globs) != rules.negate

    def _modules(self) -> set[int]:
        if self.rules.modules is None:
            return set(self.image["linked"]["path"])
        return {self.row[os.fsdecode(path)] for path in self.rules.modules}

    def _has_pipes(self, name: str) -> bool:
        if self.rules.pipes is not None:
            return self.rules.pipes
        return not _matches(name, self.config.module_dependencies_exclude_with_pipes)

    def _excluded(self, general: list[str]) -> set[int]:
        """Return executions, then, in the order of links, their processes' pseudo ones."""
        own = [os.fsdecode(glob) for glob in self.rules.exclude_commands]
        for number in self.rules.command_numbers:
            own.append(os.fsdecode(self.image.string(self.image["patterns"]["string"][number])))
        executions = self.image["executions"]
        n, upid, index = executions.n_rows, executions["upid"], executions["index"]
        out = set()
        for row in range(n):
            judged = row
            if index[row] == 0 and row + 1 < n and upid[row + 1] == upid[row]:
                judged = row + 1
            command = self._command(judged)
            is_own = bool(own) and _matches(command, own) != self.rules.negate
            if is_own or _matches(command, general):
                out.add(row)
        return out | {n + i for i, link in enumerate(self.links) if link[1] in out}

    def _command(self, row: int) -> str:
        arguments = self.image["arguments"]["string"]
        span = self.image["executions"].span("argv.start", row)
        return os.fsdecode(b" ".join(self.image.string(arguments[i]) for i in span))

    # ---- uses ----

    def _build(self) -> Build:
        uses = [*self._opens(), *self._inherited()]
        written = {use.path for use in uses if use.writes}
        executions = self.image["executions"]
        for row, path in enumerate(executions["binary"]):
            if path >= 0 and (self.rules.all_programs or path in written):
                uses.append(Use(path, row, self._start(row), self._start(row), True, False))
        last = max((use.end for use in uses), default=0)
        for i, (path, _, target, time) in enumerate(self.links):
            own = executions.n_rows + i
            uses.append(Use(path, own, time, time, False, True))
            uses.append(Use(target, own, time, max(last, time), True, False, FOREVER))
        pipes = [
            (writer, self.image["pipe_readers"]["execution"][i])
            for writer in range(executions.n_rows)
            for i in executions.span("readers.start", writer)
        ]
        return Build(uses, self._processes(), pipes, list(self._ends()))

    def _opens(self) -> Iterator[Use]:
        opens, changes = self.image["opens"], self.image["changes"]
        begun = {
            row: time
            for row, kind, time in zip(
                changes["open"], changes["kind"], changes["time_ns"], strict=True
            )
            if kind == BEGUN
        }
        several = self._several()
        for row in range(opens.n_rows):
            path, execution, access = (
                opens["path"][row],
                opens["execution"][row],
                opens["mode"][row] & 3,
            )
            begin, until = opens["open_ns"][row], opens["until_ns"][row]
            end = max(begin, opens["close_ns"][row])
            end = max(end, until if until >= 0 else self._end(execution))
            one = min(begin, begun.get(row, begin)), end, access
            for since, until_end, way in several.get(row, [one]):
                writes = way != 0 and not self._is_device(path)
                yield Use(path, execution, since, until_end, way != 1, writes)

    def _several(self) -> dict[int, list[tuple[int, int, int]]]:
        """Return the uses of the opens that had several."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        if "open_uses" in self.image.tables:
            table = self.image["open_uses"]
            columns = (table["open"], table["begin_ns"], table["end_ns"], table["mode"])
            for row, *use in zip(*columns, strict=True):
                found.setdefault(row, []).append((use[0], use[1], use[2]))
        return found

    def _inherited(self) -> Iterator[Use]:
        table = self.image["inherited"]
        columns = (table["path"], table["execution"], table["mode"])
        for path, row, mode in zip(*columns, strict=True):
            since = -FOREVER
            yield Use(path, row, self._start(row), self._end(row), mode != 1, mode != 0, since)

    def _links(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (path, execution, target, time) of symbolic links whose targets were used."""
        changes, opens = self.image["changes"], self.image["opens"]
        columns = (changes["open"], changes["kind"], changes["time_ns"], changes["name"])
        for row, kind, time, name in zip(*columns, strict=True):
            if kind != SYMLINKED or name < 0:
                continue
            path = opens["path"][row]
            here = posixpath.dirname(self.paths[path])
            text = posixpath.join(here, os.fsdecode(self.image.string(name)))
            target = self.row.get(posixpath.normpath(text), path)
            if target != path:
                yield path, opens["execution"][row], target, time

    def _ends(self) -> Iterator[End]:
        changes, opens = self.image["changes"], self.image["opens"]
        columns = (changes["open"], changes["kind"], changes["time_ns"])
        for row, kind, time in zip(*columns, strict=True):
            path = opens["path"][row]
            if kind < BEGUN and self.image["paths"]["mode"][path] & TYPE != FIFO:
                yield End(path, time, kind == AWAY)

    def _is_device(self, path: int) -> bool:
        kind = self.image["paths"]["mode"][path] & TYPE
        if kind in (0, LINK):
            return bool(re.match(r"/dev/([^/]+$|(pts|fd|snd|input|dri)/)", self.paths[path]))
        return kind in (CHARACTER, SOCKET)

    # ---- times and processes ----

    def _first_stamp(self) -> int:
        opens, start = self.image["opens"], self.image["executions"]["start_ns"]
        pairs = zip(opens["open_ns"], opens["execution"], strict=True)
        return max(min((at - start[row] for at, row in pairs if at > 0), default=0), 0)

    def _start(self, row: int) -> int:
        return int(self.first + self.image["executions"]["start_ns"][row])

    def _end(self, row: int) -> int:
        return self._start(row) + int(self.image["executions"]["elapsed_ns"][row])

    def _processes(self) -> list[int]:
        executions, children = self.image["executions"], self.image["children"]
        upid, n = executions["upid"], executions.n_rows
        joined = [(row - 1, row) for row in range(1, n) if upid[row] == upid[row - 1]]
        for row in range(n):
            for i in executions.span("children.start", row):
                flags, child = children["flags"][i], children["execution"][i]
                is_thread = flags & 0x10000 or (flags & 0x100 and not flags & 0x4000)
                if child >= 0 and is_thread:
                    joined.append((row, child))
        if self.rules.is_wrapped:
            wrappers = self.image["wrappers"]["execution"]
            joined += [(row, shell) for row, shell in enumerate(wrappers) if shell >= 0]
        return groups(n + len(self.links), joined)


def _matches(text: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)


def _of(variants: Mapping[str, Sequence[str]], name: str) -> list[str]:
    return [
        glob for wildcard, own in variants.items() if fnmatchcase(name, wildcard) for glob in own
    ]


# ---- dependencies the slow and obvious way: what tests compare libetrace.depend.graph with


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a path by an execution, from `begin` to `end`."""

    path: int
    execution: int
    begin: int
    end: int
    reads: bool
    writes: bool
    since: float | None = None  # when a read began, if not at `begin`


@dataclass(frozen=True, slots=True)
class End:
    """What a path stood for was gone: emptied or new at a time, or the name itself away."""

    path: int
    time: int
    is_away: bool


@dataclass(frozen=True)
class Build:
    """`process_of` gives the process of each execution; a pipe goes from writer to reader."""

    uses: Sequence[Use]
    process_of: Sequence[int]
    pipes: Sequence[tuple[int, int]]
    ends: Sequence[End] = ()

    @cached_property
    def of_path(self) -> Mapping[int, Sequence[Use]]:
        """The uses of each path."""
        out: defaultdict[int, list[Use]] = defaultdict(list)
        for use in self.uses:
            out[use.path].append(use)
        return out

    @cached_property
    def of_process(self) -> Mapping[int, Sequence[Use]]:
        """The uses of each process."""
        out: defaultdict[int, list[Use]] = defaultdict(list)
        for use in self.uses:
            out[self.process_of[use.execution]].append(use)
        return out

    @cached_property
    def ends_of(self) -> Mapping[int, Sequence[End]]:
        """The ends of each path."""
        out: defaultdict[int, list[End]] = defaultdict(list)
        for end in self.ends:
            out[end.path].append(end)
        return out


@dataclass(frozen=True, slots=True)
class Left:
    """What is left out: paths that are listed only, executions that do not count."""

    stops: Collection[int] = ()
    excluded: Collection[int] = ()
    ordered: bool = True
    pipes: bool = True


#: a process, and until when what it did counts
State = tuple[int, float]


def closure(build: Build, roots: Collection[int], left: Left) -> set[int]:
    """Return what the roots were made of, without the roots."""
    done: dict[int, float] = {}  # process -> until when
    listed: set[int] = set()
    waiting = [
        state
        for root in roots
        for state in writers(build, root, last_content(build, root), float("inf"), left)
    ]
    while waiting:
        state = waiting.pop()
        process, until = state
        if until <= done.get(process, float("-inf")):
            continue
        done[process] = until
        if left.pipes:
            waiting += sources(build, state, left)
        for use in reads(build, state, left):
            listed.add(use.path)
            if use.path not in left.stops:
                end = use.end if left.ordered else float("inf")
                waiting += writers(build, use.path, content_of(build, use), end, left)
    return listed - set(roots)


def content_of(build: Build, use: Use) -> float:
    """Return since when there was what a read found."""
    began = use.begin if use.since is None else use.since
    return max(
        (
            end.time
            for end in build.ends_of.get(use.path, ())
            if (end.time < began if end.is_away else end.time <= began)
        ),
        default=float("-inf"),
    )


def last_content(build: Build, path: int) -> float:
    """Return since when there was what a path held last."""
    writes = [use for use in build.of_path.get(path, ()) if use.writes]
    return max(
        (
            end.time
            for end in build.ends_of.get(path, ())
            if any(end.time < w.begin if end.is_away else end.time <= w.end for w in writes)
        ),
        default=float("-inf"),
    )


def writers(build: Build, path: int, since: float, until: float, left: Left) -> Iterator[State]:
    """Yield who wrote what a path held from one time to another.

    And until when what they read before counts.
    """
    for use in build.of_path.get(path, ()):
        counts = use.writes and use.begin <= until and use.execution not in left.excluded
        if counts and (use.end >= since or not left.ordered):
            yield build.process_of[use.execution], use.end if left.ordered else float("inf")


def reads(build: Build, state: State, left: Left) -> Iterator[Use]:
    """Yield what a process read before some time."""
    process, until = state
    for use in build.of_process.get(process, ()):
        if use.reads and use.begin <= until and use.execution not in left.excluded:
            yield use


def sources(build: Build, state: State, left: Left) -> Iterator[State]:
    """Yield who wrote to a pipe that a process read."""
    process, until = state
    for writer, reader in build.pipes:
        if build.process_of[reader] == process and not {writer, reader} & set(left.excluded):
            yield build.process_of[writer], until


def reverse(build: Build, n_paths: int, root: int, left: Left) -> set[int]:
    """Return every path whose closure holds the root."""
    return {
        path for path in range(n_paths) if path != root and root in closure(build, [path], left)
    }


def groups(n: int, joined: Sequence[tuple[int, int]]) -> list[int]:
    """Number the connected groups of 0..n-1 in order of their smallest member."""
    group = list(range(n))
    for a, b in itertools.chain(joined, joined):
        low, high = sorted((group[a], group[b]))
        group = [low if each == high else each for each in group]
    numbers = {first: number for number, first in enumerate(dict.fromkeys(group))}
    return [numbers[each] for each in group]
