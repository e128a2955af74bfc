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
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property

from libetrace.depend.configuration import Config, Rules
from libetrace.image.file import Image

TYPE, FIFO, LINK, CHARACTER, SOCKET = 0x7C, 0x44, 0x68, 0x48, 0x70
RENAMED, LINKED, SYMLINKED, AWAY, BEGUN, EXCHANGED = 2, 3, 4, 5, 6, 7
FOREVER = float("inf")
UNNAMED = re.compile(r"(/proc/[^/]+/fd/)?pipe:\[?[0-9]+\]?")


class Rule:
    """What every file of an image depends on, by rules and configuration."""

    def __init__(self, image: Image, config: Config, rules: Rules) -> None:
        self.image, self.config, self.rules = image, config, rules
        self.paths = [os.fsdecode(image.path_string(row)) for row in range(image["paths"].n_rows)]
        self.row = {path: row for row, path in enumerate(self.paths)}
        self.links = list(self._symlinks())
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
        """Return the executions that a pattern leaves out."""
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
        return out

    def _command(self, row: int) -> str:
        arguments = self.image["arguments"]["string"]
        span = self.image["executions"].span("argv.start", row)
        return os.fsdecode(b" ".join(self.image.string(arguments[i]) for i in span))

    # ---- uses ----

    def _build(self) -> Build:
        opened = list(self._opens())
        uses = [*opened, *self._inherited()]
        written = self._written()
        executions = self.image["executions"]
        for row, path in enumerate(executions["binary"]):
            if path >= 0 and (self.rules.all_programs or path in written):
                uses.append(Use(path, row, self._start(row), self._start(row), True, False))
        last = max((use.end for use in uses), default=0)
        moves, links = list(self._moves(opened)), self.links
        held = [use for use in uses if use.writes]
        made: list[Move | Link] = [*moves, *links]
        names = {(name.execution, name.new, name.time) for name in made}
        sources = {(move.execution, move.old, move.then) for move in moves if not move.exchanges}
        sources |= {
            (link.execution, link.target, link.time) for link in links if link.target is not None
        }
        uses = list(without_moves(uses, names, sources))
        uses += moved(moves, held)
        uses += symlinked(links, last)
        pipes = [
            (writer, self.image["pipe_readers"]["execution"][i])
            for writer in range(executions.n_rows)
            for i in executions.span("readers.start", writer)
        ]
        ends = list(self._ends())
        return Build(uses, self._processes(), pipes, ends, self._forks(), self._execs())

    def _written(self) -> set[int]:
        """Return the paths that the build wrote, so that their execution reads them."""
        opens, inherited = self.image["opens"], self.image["inherited"]
        pairs = [*zip(opens["path"], opens["mode"], strict=True)]
        found = {path for path, mode in pairs if mode & 3 and not self._is_device(path)}
        pairs = [*zip(inherited["path"], inherited["mode"], strict=True)]
        return found | {path for path, mode in pairs if mode & 3}

    def _opens(self) -> Iterator[Use]:
        opens, tokens = self.image["opens"], self._tokens()
        begun = {row: time for row, kind, time, _ in self._changes() if kind == BEGUN}
        several = self._several()
        for row in range(opens.n_rows):
            path, execution = opens["path"][row], opens["execution"][row]
            if path in tokens:
                continue
            begin, until = max(opens["open_ns"][row], 0), opens["until_ns"][row]
            end = max(begin, opens["close_ns"][row])
            end = max(end, until if until >= 0 else self._end(execution))
            one = min(begin, begun.get(row, begin)), end, opens["mode"][row] & 3
            is_own_name = opens["original"][row] == self.image["paths"]["string"][path]
            for since, until_end, way in several.get(row, [one]):
                writes = way != 0 and not self._is_device(path)
                use = Use(path, execution, since, until_end, way != 1, writes)
                yield replace(use, is_own_name=is_own_name)

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
        """Yield what descriptor 0 reads, and what 1 and 2 write, as far as they may."""
        table = self.image["inherited"]
        columns = (table["path"], table["execution"], table["descriptor"], table["mode"])
        for path, row, descriptor, mode in zip(*columns, strict=True):
            reads = descriptor == 0 and mode != 1
            writes = descriptor != 0 and mode != 0
            if reads or writes:
                yield Use(path, row, self._start(row), self._end(row), reads, writes, -FOREVER)

    def _changes(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (open, kind, time, name) of every change."""
        table = self.image["changes"]
        yield from zip(table["open"], table["kind"], table["time_ns"], table["name"], strict=True)

    def _tokens(self) -> set[int]:
        """Return pipes without a name, and FIFOs that are jobservers."""
        ways: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        opens = self.image["opens"]
        for path, row, mode in zip(opens["path"], opens["execution"], opens["mode"], strict=True):
            ways[path, row] |= {0, 1} if mode & 3 == 2 else {mode & 3}
        both = [path for (path, _), found in ways.items() if found == {0, 1}]
        named = set(self._named_jobservers())
        found = set()
        for path, name in enumerate(self.paths):
            is_fifo = self.image["paths"]["mode"][path] & TYPE == FIFO
            is_shared = is_fifo and both.count(path) > 1
            is_make = re.search(r"/GMfifo[0-9]+$", name) is not None
            if is_shared or is_make or name in named or UNNAMED.fullmatch(name):
                found.add(path)
        return found

    def _named_jobservers(self) -> Iterator[str]:
        """Yield the FIFOs in the variables that a make hands on."""
        for string in self.image["environment"]["string"]:
            name, _, value = os.fsdecode(self.image.string(string)).partition("=")
            if name in ("MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"):
                yield from re.findall(r"--jobserver-(?:auth|fds)=fifo:(\S+)", value)

    def _moves(self, opened: Sequence[Use]) -> Iterator[Move]:
        """Yield renames, links, and both halves of exchanges."""
        opens = self.image["opens"]
        for row, kind, time, name in self._changes():
            if kind not in (RENAMED, LINKED, EXCHANGED) or name < 0:
                continue
            execution, new = opens["execution"][row], opens["path"][row]
            old = self.row.get(os.fsdecode(self.image.string(name)))
            if old is None:
                continue
            if kind == EXCHANGED:
                then = time - 1  # each half reads before the other writes
            elif kind == RENAMED:
                then = max((t for t in self._gone(execution, old) if t <= time), default=time)
            else:
                then = _time_of_source(opened, execution, old, time)
            yield Move(execution, old, new, time, then, kind == EXCHANGED)

    def _gone(self, execution: int, path: int) -> Iterator[int]:
        opens = self.image["opens"]
        for row, kind, time, _ in self._changes():
            if kind == AWAY and (opens["execution"][row], opens["path"][row]) == (execution, path):
                yield time

    def _symlinks(self) -> Iterator[Link]:
        """Yield every name that a symbolic link had: those it was moved to are links, too."""
        found = [
            (self.image["opens"]["path"][row], name, self.image["opens"]["execution"][row], time)
            for row, kind, time, name in self._changes()
            if kind == SYMLINKED
        ]
        while found:
            path, name, execution, time = found.pop()
            later = sorted(end for end in self._given(path) if end[0] > time)
            end, kind, _ = later[0] if later else (FOREVER, BEGUN, 0)
            yield Link(execution, path, self._target(path, name), time, end)
            for then, move, new, by in sorted(self._taken(path)):
                is_kept = move == LINKED and time < then < end
                is_gone = then >= end and (kind, move) in ((AWAY, RENAMED), (EXCHANGED, EXCHANGED))
                if is_kept or is_gone:
                    found.append((new, name, by, then))
                if then >= end:
                    break

    def _given(self, path: int) -> Iterator[tuple[int, int, int]]:
        """Yield (time, kind, row) of what made a name stand for another file, or for none."""
        for row, kind, time, _ in self._changes():
            if self.image["opens"]["path"][row] == path and kind != BEGUN:
                yield time, kind, row

    def _taken(self, path: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (time, kind, new name, execution) of the moves of a name."""
        for row, kind, time, name in self._changes():
            is_move = kind in (RENAMED, LINKED, EXCHANGED) and name >= 0
            if is_move and self.paths[path] == os.fsdecode(self.image.string(name)):
                opens = self.image["opens"]
                yield time, kind, opens["path"][row], opens["execution"][row]

    def _target(self, link: int, name: int) -> int | None:
        if name < 0:
            return None
        here = posixpath.dirname(self.paths[link])
        text = posixpath.join(here, os.fsdecode(self.image.string(name)))
        return self.row.get(posixpath.normpath(text))

    def _ends(self) -> Iterator[End]:
        for row, kind, time, _ in self._changes():
            path = self.image["opens"]["path"][row]
            if kind != BEGUN and self.image["paths"]["mode"][path] & TYPE != FIFO:
                yield End(path, time, kind in (AWAY, EXCHANGED))

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
        return groups(n, joined)

    def _execs(self) -> dict[int, int]:
        """Return when those processes executed that had not before, by their execution."""
        executions = self.image["executions"]
        upid = executions["upid"]
        return {
            row: self._start(row + 1)
            for row in range(executions.n_rows - 1)
            if executions["index"][row] == 0 and upid[row] == upid[row + 1]
        }

    def _forks(self) -> list[Fork]:
        executions, children = self.image["executions"], self.image["children"]
        times = {}
        if "fork_times" in self.image.tables:
            columns = children["execution"], self.image["fork_times"]["time_ns"]
            times = {child: time for child, time in zip(*columns, strict=True) if time >= 0}
        return [
            Fork(parent, row, min(times.get(row, FOREVER), self._start(row)))
            for row, parent in enumerate(executions["parent"])
            if parent >= 0 and executions["index"][row] == 0
        ]


def _time_of_source(opened: Sequence[Use], execution: int, path: int, time: int) -> int:
    """Return when a link read the old name: the moment of its own half, if that was kept."""
    own = [
        use
        for use in opened
        if (use.execution, use.path) == (execution, path) and use.is_own_name and use.begin <= time
    ]
    last = max(own, key=lambda use: use.begin, default=None)
    return last.begin if last and last.begin == last.end else time


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
    owner: Hashable = None  # what used it, if not the process of the execution
    is_own_name: bool = True  # not opened through a symbolic link


@dataclass(frozen=True, slots=True)
class Move:
    """A rename, a hard link, or half of an exchange."""

    execution: int
    old: int
    new: int
    time: int
    then: int  # when it read the old name
    exchanges: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A name of a symbolic link, until the name was given to something else."""

    execution: int
    new: int
    target: int | None
    time: int
    end: float


@dataclass(frozen=True, slots=True)
class Fork:
    """The first execution of a process, and the one that forked it before it did anything."""

    parent: int
    child: int
    time: float


@dataclass(frozen=True, slots=True)
class End:
    """What a path stood for was gone: emptied or new at a time, or the name itself away."""

    path: int
    time: int
    is_away: bool


def without_moves(
    uses: Iterable[Use],
    names: Collection[tuple[int, int, int]],
    sources: Collection[tuple[int, int, int]],
) -> Iterator[Use]:
    """Yield uses without what moves and symbolic links did: the moments at their two names."""
    for use in uses:
        at = use.execution, use.path, use.begin
        is_moment = use.is_own_name and use.begin == use.end
        if is_moment and at in names:
            continue
        yield replace(use, reads=False) if is_moment and at in sources else use


def moved(moves: Sequence[Move], held: Sequence[Use]) -> Iterator[Use]:
    """Yield the uses by moves, and what goes on under the new name of what was held open."""
    for number, move in enumerate(moves):
        owner = ("move", number)
        yield Use(move.old, move.execution, move.then, move.then, True, False, owner=owner)
        yield Use(move.new, move.execution, move.time, move.time, False, True, owner=owner)
    for use in held:
        yield from carried(use, moves)


def carried(use: Use, moves: Sequence[Move]) -> Iterator[Use]:
    """Yield the writes of other names by which files went that a use held open.

    A use may be of several files of one name, one after the other: so every move of it counts.
    """
    waiting, known = [(use.path, use.begin)], set[tuple[int, int]]()
    while waiting:
        path, since = waiting.pop()
        for move in moves:
            went = move.new, move.time
            if move.old == path and since < move.time < use.end and went not in known:
                known.add(went)
                waiting.append(went)
                yield replace(use, path=move.new, begin=move.time, reads=False)


def symlinked(links: Sequence[Link], last: int) -> Iterator[Use]:
    """Yield the uses of symbolic links: each is a process of its own.

    It writes its name until something else gets that, and reads its target as long as the trace
    lasts.
    """
    for number, link in enumerate(links):
        if link.target == link.new:
            continue
        end = max(link.time, int(min(last, link.end - 1)))
        own = Use(link.new, link.execution, link.time, end, False, True)
        own = replace(own, owner=("link", number))
        yield own
        if link.target is not None:
            reads = replace(own, path=link.target, reads=True, writes=False)
            yield replace(reads, end=max(link.time, last), since=FOREVER)


@dataclass(frozen=True)
class Build:
    """`process_of` gives the process of each execution; a pipe goes from writer to reader.

    `execs` has the first executions of those processes that executed a program later, and when:
    what they did before is their own, and that of a node of memory, which alone has a parent.
    """

    uses: Sequence[Use]
    process_of: Sequence[int]
    pipes: Sequence[tuple[int, int]]
    ends: Sequence[End] = ()
    forks: Sequence[Fork] = ()
    execs: Mapping[int, int] = field(default_factory=dict)

    def process(self, execution: int) -> Hashable:
        """Return the node of the process of an execution."""
        return "process", self.process_of[execution]

    def memory(self, execution: int) -> Hashable:
        """Return the node of what an execution has in memory."""
        return ("memory", execution) if execution in self.execs else self.process(execution)

    def readers(self, execution: int) -> set[Hashable]:
        """Return the nodes of what an execution reads."""
        return {self.process(execution), self.memory(execution)}

    @cached_property
    def owned(self) -> Sequence[tuple[Hashable, Use]]:
        """Every use with whose it is; some are of two."""
        out: list[tuple[Hashable, Use]] = []
        for use in self.uses:
            if use.owner is not None:
                out.append((use.owner, use))
                continue
            out.append((self.process(use.execution), use))
            executed = self.execs.get(use.execution)
            if executed is not None and use.begin < executed:
                writes = use.writes and use.end < executed  # else they are the program's
                out.append((self.memory(use.execution), replace(use, writes=writes)))
        return out

    @cached_property
    def of_path(self) -> Mapping[int, Sequence[tuple[Hashable, Use]]]:
        """The uses of each path."""
        out: defaultdict[int, list[tuple[Hashable, Use]]] = defaultdict(list)
        for owner, use in self.owned:
            out[use.path].append((owner, use))
        return out

    @cached_property
    def of_process(self) -> Mapping[Hashable, Sequence[Use]]:
        """The uses of each node."""
        out: defaultdict[Hashable, list[Use]] = defaultdict(list)
        for owner, use in self.owned:
            out[owner].append(use)
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


#: whose, and until when what it did counts
State = tuple[Hashable, float]


def closure(build: Build, roots: Collection[int], left: Left) -> set[int]:
    """Return what the roots were made of, without the roots."""
    done: dict[Hashable, float] = {}  # node -> until when
    listed: set[int] = set()
    waiting = [
        state
        for root in roots
        for state in writers(build, root, last_content(build, root), FOREVER, left)
    ]
    while waiting:
        state = waiting.pop()
        node, until = state
        if until <= done.get(node, -FOREVER):
            continue
        done[node] = until
        waiting += sources(build, state, left)
        for use in reads(build, state, left):
            listed.add(use.path)
            if use.path not in left.stops:
                limit = min(until, use.end) if left.ordered else FOREVER
                waiting += writers(build, use.path, content_of(build, use), limit, left)
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
        default=-FOREVER,
    )


def last_content(build: Build, path: int) -> float:
    """Return since when there was what a path held last."""
    writes = [use for _, use in build.of_path.get(path, ()) if use.writes]
    return max(
        (
            end.time
            for end in build.ends_of.get(path, ())
            if any(end.time <= (w.begin if end.is_away else w.end) for w in writes)
        ),
        default=-FOREVER,
    )


def writers(build: Build, path: int, since: float, until: float, left: Left) -> Iterator[State]:
    """Yield who wrote what a path held from one time to another.

    And until when what they read before counts.
    """
    for owner, use in build.of_path.get(path, ()):
        counts = use.writes and use.begin <= until and use.execution not in left.excluded
        if counts and (use.end >= since or not left.ordered):
            yield owner, min(until, use.end) if left.ordered else FOREVER


def reads(build: Build, state: State, left: Left) -> Iterator[Use]:
    """Yield what a process read before some time."""
    node, until = state
    for use in build.of_process.get(node, ()):
        if use.reads and use.begin <= until and use.execution not in left.excluded:
            yield use


def sources(build: Build, state: State, left: Left) -> Iterator[State]:
    """Yield who wrote to a pipe that a process read, and who forked it."""
    node, until = state
    excluded = set(left.excluded)
    for writer, reader in build.pipes if left.pipes else ():
        if node in build.readers(reader) and not {writer, reader} & excluded:
            yield build.memory(writer), until
    for fork in build.forks:
        is_own = node == build.memory(fork.child) != build.memory(fork.parent)
        if is_own and not {fork.child, fork.parent} & excluded:
            yield build.memory(fork.parent), min(until, fork.time) if left.ordered else FOREVER


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
