# SPDX-License-Identifier: Apache-2.0
"""Two databases -> for each file that the second build made, the first thing that differed.

A file is paired with that of the same name, and the step that made it (etrace/query/rows/steps.py)
with the one of the first build. A file that was made of a file which the same build made has the
cause of that one, so a cause is the root. Names are those of `cas diff` and `etrace compare`
(matching.py). Contents are compared by hash where both databases have it
(etrace/query/hashes.py), else by size: a change that keeps a size is not seen then.
"""

from __future__ import annotations

import enum
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from libetrace.image.file import Image

from etrace.errors import NothingFoundError
from etrace.nfsdb.environment import is_traced, of_processes
from etrace.query.changes.diff import argument_delta
from etrace.query.changes.matching import Numbers, Side, roots
from etrace.query.hashes import Hashes
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.query.rows.steps import Step, Steps
from etrace.query.select.file_names import find_files
from etrace.spec.database import NONE
from etrace.spec.suffixes import SHARED_OBJECT


class Cause(enum.StrEnum):
    """Why a file was made again, in the order in which they are shown."""

    INPUT = "input"
    MADE_INPUT = "made-input"
    TOOL = "tool"
    FLAG = "flag"
    ENVIRONMENT = "environment"
    INPUTS = "inputs"
    ORDER = "order"
    NEW = "new"
    NEEDLESS = "needless"


class Cache(enum.StrEnum):
    """What a launcher with a cache did, as its children show."""

    HIT = "hit"
    MISS = "miss"
    UNSEEN = "unseen"  #: the compilers of sccache are children of its server


MAX_VIA = 100


@dataclass(frozen=True, slots=True)
class Reason:
    """What differed: `what` is a file, a word or a variable, None where it is absent.

    Contents are shown as sizes in bytes, or where these are equal as the first digits of SHA-256.
    `execution` is the command of the second build where it differed; `via` are the rows of the
    files from the output to where it differed, the first MAX_VIA of them.
    """

    cause: Cause
    execution: int
    what: bytes = b""
    before: bytes | None = None
    after: bytes | None = None
    via: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """A file that the second build made: a row of `paths`, and the command that made it."""

    path: int
    execution: int
    reason: Reason
    cache: Cache | None


#: not files that a build makes or is made of
_NOT_FILES = frozenset((FileKind.DEVICE, FileKind.DIRECTORY))
_SOURCES = frozenset((FileKind.SOURCE, FileKind.HEADER))
#: variables that differ from run to run, or that only say where something runs
_VOLATILE = re.compile(
    rb"MAKE.*|MFLAGS|PWD|OLDPWD|SHLVL|_|TERM|COLUMNS|LINES|SSH_.*|XDG_.*|DISPLAY|LD_PRELOAD"
    rb"|ETRACE.*|COLLECT_.*"
)
#: variables that compilers of C, linkers and archivers read: gcc(1), clang(1), ld(1), ccache(1)
_OF_TOOLS = re.compile(
    rb"CPATH|(C|CPLUS|OBJC)_INCLUDE_PATH|LIBRARY_PATH|COMPILER_PATH|GCC_.*|SOURCE_DATE_EPOCH"
    rb"|DEPENDENCIES_OUTPUT|SUNPRO_DEPENDENCIES|LD_.*|LDEMULATION|LANG|LC_.*|CCC_.*|CL|_CL_"
    rb"|S?CCACHE_.*|DISTCC_.*|ICECC_.*"
)
_C = frozenset(("c", "c++", "objc", "objc++"))
#: how contents of one size are shown
DIGEST, N_DIGITS = "sha256:", 12
#: programs that run compilers in another process
_SERVED = frozenset(("sccache",))


class _Build:
    def __init__(self, image: Image, root: bytes, numbers: Numbers) -> None:
        self.image, self.steps, self.kinds = image, Steps(image), FileKinds(image)
        self.side = Side(image, root, self.kinds.temporaries, numbers)
        self._hashes = Hashes(image)
        self.is_hashed = self._hashes.are_known

    @cached_property
    def by_name(self) -> Mapping[bytes, int]:
        """Normal names of files -> rows; those of several files are left out."""
        found: dict[bytes, int] = {}
        n = Counter[bytes]()
        for path in range(self.image["paths"].n_rows):
            name = self.side.paths[path]
            n[name] += 1
            found[name] = path
        return {name: path for name, path in found.items() if n[name] == 1}

    @cached_property
    def _is_elsewhere(self) -> bool:
        """Whether no file that was made is there: the trace was parsed on another machine."""
        mode, made = self.image["paths"]["mode"], self.steps.makers
        return not any(mode[path] and self.kinds.of(path) not in _NOT_FILES for path in made)

    def lasts(self, path: int) -> bool:
        temporaries = self.kinds.temporaries
        if not self._is_elsewhere:
            return temporaries.mode_of(path) != 0
        name = self.image.path_string(path)
        return temporaries.starred(name) == name

    def content(self, path: int) -> tuple[int, str]:
        """Return size and SHA-256 of a file; NONE and empty where they are not known."""
        found = self._hashes.of(path)
        if found is None or not found.is_of_build:
            return self.kinds.size_of(path), ""
        return found.size, found.sha256

    def outputs(self, step: Step) -> list[int]:
        """Return the files that a step made, without the cache of its launcher."""
        is_cached = self._cached(step)
        return sorted(
            path
            for path in step.writes
            if self.kinds.of(path) not in _NOT_FILES and not is_cached(path)
        )

    def _cached(self, step: Step) -> Callable[[int], bool]:
        """Return what says if a file is of the cache of a launcher: no word says its name."""
        if not step.is_launched:
            return lambda _: False
        named = {_stem(word) for word in self.side.argv(step.head)}
        return lambda path: _stem(self.image.path_string(path)) not in named

    def inputs(self, step: Step) -> tuple[set[int], set[int]]:
        """Return the files that a step read, and the programs and libraries that it ran on."""
        programs = self.steps.programs(step)
        inputs, tools = set[int](), set(programs)
        is_cached = self._cached(step)
        for path in step.reads - step.writes:
            kind = self.kinds.of(path)
            if kind == FileKind.TOOL:
                if SHARED_OBJECT.search(self.image.path_string(path)):
                    tools.add(path)
            elif kind in _SOURCES or (kind not in _NOT_FILES and not is_cached(path)):
                inputs.add(path)
        made = {path for path in programs if path in self.steps.makers}
        return inputs | made, tools - made

    @cached_property
    def _variables(self) -> dict[int, dict[bytes, bytes]]:
        traced = of_processes(self.image) if is_traced(self.image) else {}
        pairs = {
            upid: [variable.partition(b"=") for variable in own] for upid, own in traced.items()
        }
        return {
            upid: {name: self.side.normal(value) for name, _, value in own}
            for upid, own in pairs.items()
        }

    def environment(self, row: int) -> dict[bytes, bytes] | None:
        """Return the variables of a process; None if they were not traced."""
        return self._variables.get(self.image["executions"]["upid"][row])


class Rebuilt:
    """The causes of two builds."""

    def __init__(self, before: Image, after: Image) -> None:
        numbers, own = Numbers(), roots(before, after)
        self.a, self.b = _Build(before, own[0], numbers), _Build(after, own[1], numbers)
        self._start = after["executions"]["start_ns"]
        self._of_files: dict[int, Reason] = {}
        self._of_steps: dict[tuple[int, int], Reason] = {}
        self._partners: dict[int, dict[int, Step]] = {}
        self._running: set[int] = set()
        self._found = list(self._find())

    @property
    def are_hashed(self) -> bool:
        """Whether both builds have hashes of files."""
        return self.a.is_hashed and self.b.is_hashed

    def outputs(self, names: Iterable[bytes] = ()) -> list[Output]:
        """Return what was made again, of some files if there are names; NothingFoundError."""
        wanted = list(names)
        if not wanted:
            return self._found
        rows = find_files(self.b.image, wanted)
        known = {each.path: each for each in self._found}
        for row in rows:
            if row not in known:
                path = os.fsdecode(self.b.image.path_string(row))
                raise NothingFoundError(
                    f"the second build did not make {path}",
                    "without a file, etrace why-rebuilt lists what it made",
                )
        return [known[row] for row in rows]

    def shown(self, path: int) -> bytes:
        """Return the normal name of a file of the second build."""
        return self.b.side.paths[path]

    def label(self, execution: int) -> str:
        """Return the name of a command of the second build."""
        return self.b.side.label(execution)

    # ---- files ----

    def _find(self) -> Iterator[Output]:
        """Yield the lasting outputs; steps in the order in which they end, so inputs are first."""
        b = self.b
        last: dict[int, Output] = {}
        for step in sorted(b.steps.by_head.values(), key=lambda each: (each.end_ns, each.head)):
            for path in b.outputs(step):
                reason = self._of_output(path, step)
                earlier = self._of_files.get(path)
                if earlier is not None and earlier.cause != Cause.NEEDLESS:
                    reason = earlier
                self._of_files[path] = reason
                if b.lasts(path):
                    last[path] = Output(path, step.head, reason, self._cache(step))
        yield from sorted(last.values(), key=lambda each: b.side.paths[each.path])

    def _of_output(self, path: int, step: Step) -> Reason:
        """Return why a step made a file; a temporary file without a partner has no cause."""
        other = self._partner(path, step)
        if other is None:
            return Reason(Cause.NEW if self.b.lasts(path) else Cause.NEEDLESS, step.head)
        return self._of_step(step, other)

    def _partner(self, path: int, step: Step) -> Step | None:
        """Return the step of the first build that made the same file, of several the alike one."""
        there = self.a.by_name.get(self.b.side.paths[path])
        makers = [] if there is None else self.a.steps.makers.get(there, [])
        mine = self.b.steps.makers[path]
        if len(makers) <= 1:
            return makers[0] if makers else None
        if path not in self._partners:
            self._partners[path] = _pairs(
                [(step, self.b.side.label(step.head)) for step in mine],
                [(each, self.a.side.label(each.head)) for each in makers],
            )
        return self._partners[path][step.head]

    def _cache(self, step: Step) -> Cache | None:
        if not step.is_launched or step.tool is None:
            return None
        if step.tool.name in _SERVED:
            return Cache.UNSEEN
        return Cache.MISS if self.b.steps.compiles(step) else Cache.HIT

    # ---- steps ----

    def _of_step(self, step: Step, other: Step) -> Reason:
        key = step.head, other.head
        if key not in self._of_steps:
            if step.head in self._running:  # a ring of pipes
                return Reason(Cause.NEEDLESS, step.head)
            self._running.add(step.head)
            found = (self._earlier(step, other), *self._own(step, other))
            self._running.discard(step.head)
            first = next((each for each in found if each is not None), None)
            self._of_steps[key] = first or Reason(Cause.NEEDLESS, step.head)
        return self._of_steps[key]

    def _earlier(self, step: Step, other: Step) -> Reason | None:
        """Return the cause of what a step was made of, the first in time."""
        found, needless = [], list[int]()
        for path in self.b.inputs(step)[0]:
            reason = self._of_files.get(path)
            if reason is None:
                continue
            if reason.cause == Cause.NEEDLESS:
                needless.append(path)
            elif reason.cause != Cause.NEW:
                found.append(replace(reason, via=(path, *reason.via[: MAX_VIA - 1])))
        differs = self._changed(needless, other, Cause.MADE_INPUT, step)
        if differs is not None:
            found.append(differs)
        pairs = zip(sorted(step.sources), sorted(other.sources), strict=False)
        steps = (self.b.steps.by_head, self.a.steps.by_head)
        piped = (self._of_step(steps[0][mine], steps[1][its]) for mine, its in pairs)
        found += [each for each in piped if each.cause not in (Cause.NEW, Cause.NEEDLESS)]
        return min(found, key=lambda each: (self._start[each.execution], each.via), default=None)

    def _own(self, step: Step, other: Step) -> Iterator[Reason | None]:
        """Yield what differs of a step itself, in the order in which it came to matter."""
        inputs, tools = self.b.inputs(step)
        before, before_tools = self.a.inputs(other)
        yield self._other_program(step, other)
        yield self._changed(tools, other, Cause.TOOL, step, before_tools)
        yield self._words(step, other, inputs, before)
        yield self._variable(step, other)
        external = [path for path in inputs if path not in self._of_files]
        yield self._changed(external, other, Cause.INPUT, step)
        yield self._others(step, other, inputs, before)

    def _other_program(self, step: Step, other: Step) -> Reason | None:
        a, b = self.a.side.program(other.head), self.b.side.program(step.head)
        return None if a == b else Reason(Cause.TOOL, step.head, b, a, b)

    def _changed(
        self, paths: Iterable[int], other: Step, cause: Cause, step: Step,
        among: set[int] | None = None,
    ) -> Reason | None:  # fmt: skip
        """Return the first file, by name, whose content is not that of the first build."""
        there = among or other.reads | self.a.steps.programs(other)
        for name, path in sorted((self.b.side.paths[path], path) for path in paths):
            mine = self.a.by_name.get(name)
            if mine is None or mine not in there:
                continue
            differs = _difference(self.a.content(mine), self.b.content(path))
            if differs is not None:
                return Reason(cause, step.head, name, *differs)
        return None

    def _words(self, step: Step, other: Step, inputs: set[int], before: set[int]) -> Reason | None:
        a, b = self.a.side.argv(other.head)[1:], self.b.side.argv(step.head)[1:]
        if a == b:
            return None
        delta = argument_delta(a, b)
        if sorted(a) == sorted(b):
            i = next(i for i, pair in enumerate(zip(a, b, strict=True)) if pair[0] != pair[1])
            return Reason(Cause.ORDER, step.head, b[i], a[i], b[i])
        names = {os.path.basename(self.b.side.paths[path]) for path in inputs}  # noqa: PTH119
        names |= {os.path.basename(self.a.side.paths[path]) for path in before}  # noqa: PTH119
        changed = (*delta.removed, *delta.added)
        is_files = all(os.path.basename(word) in names for word in changed)  # noqa: PTH119
        gone, come = (next(iter(words), None) for words in (delta.removed, delta.added))
        cause = Cause.INPUTS if is_files else Cause.FLAG
        return Reason(cause, step.head, come or gone or b"", gone, come)

    def _variable(self, step: Step, other: Step) -> Reason | None:
        a, b = self.a.environment(other.head), self.b.environment(step.head)
        if a is None or b is None:
            return None
        for name in sorted(a.keys() | b.keys()):
            if a.get(name) != b.get(name) and _is_read(step, name):
                return Reason(Cause.ENVIRONMENT, step.head, name, a.get(name), b.get(name))
        return None

    def _others(self, step: Step, other: Step, inputs: set[int], before: set[int]) -> Reason | None:
        """Return a file that only one of two steps read; a hit of a cache reads fewer."""
        if Cache.HIT in (self._cache(step), _hit(self.a.steps, other)):
            return None
        a = {self.a.side.paths[path] for path in before if self.a.lasts(path)}
        b = {self.b.side.paths[path] for path in inputs if self.b.lasts(path)}
        for name in sorted(a ^ b):
            there = name if name in a else None
            return Reason(Cause.INPUTS, step.head, name, there, None if there else name)
        return None


def _pairs(mine: Sequence[tuple[Step, str]], makers: Sequence[tuple[Step, str]]) -> dict[int, Step]:
    """Return for each step, by its head, the one of the other build that takes its place.

    That is the one with its label and its number among these; without such a label, its number.
    """
    alike: defaultdict[str, list[Step]] = defaultdict(list)
    for step, label in makers:
        alike[label].append(step)
    every, n_seen = [step for step, _ in makers], Counter[str]()
    found = {}
    for number, (step, label) in enumerate(mine):
        own, at = (alike[label], n_seen[label]) if label in alike else (every, number)
        n_seen[label] += 1
        found[step.head] = own[min(at, len(own) - 1)]
    return found


def _difference(a: tuple[int, str], b: tuple[int, str]) -> tuple[bytes, bytes] | None:
    """Return what shows that two contents differ, None when they do not as far as is known."""
    (before, old), (after, new) = a, b
    if (old == new) if old and new else (before == after or NONE in (before, after)):
        return None
    if before != after:
        return b"%d" % before, b"%d" % after
    shown = [f"{DIGEST}{each[:N_DIGITS]}".encode() for each in (old, new)]
    return shown[0], shown[1]


def _hit(steps: Steps, step: Step) -> Cache | None:
    return Cache.HIT if step.is_launched and not steps.compiles(step) else None


def _is_read(step: Step, variable: bytes) -> bool:
    """Return whether a step may read a variable."""
    if _VOLATILE.fullmatch(variable):
        return False
    tool = step.tool
    if tool is None or (tool.kind == "compiler" and tool.language not in _C):
        return True
    return _OF_TOOLS.fullmatch(variable) is not None


def _stem(name: bytes) -> bytes:
    return os.path.basename(name).partition(b".")[0]  # noqa: PTH119  bytes


def by_cause(outputs: Sequence[Output]) -> dict[Cause, list[Output]]:
    """Return the outputs by cause, in the order of the causes."""
    found: dict[Cause, list[Output]] = {}
    for cause in Cause:
        own = [each for each in outputs if each.reason.cause == cause]
        if own:
            found[cause] = own
    return found
