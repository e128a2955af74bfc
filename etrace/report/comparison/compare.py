# SPDX-License-Identifier: Apache-2.0
"""Two databases -> what the second build does otherwise: figures, modules, failures, times.

What modules are made of is that of the report. Commands match as in `cas diff`
(etrace/query/changes/matching.py); equal commands of a build, such as the probes of a configure
run, count as one. Repeated builds say how much a time differs when nothing changed
(etrace/timing/noise.py).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from libetrace.image.file import Image

from etrace.query import includes
from etrace.query.changes.matching import Numbers, match, roots
from etrace.query.failures import find_failures, last_lines
from etrace.query.rows.commands import Commands
from etrace.query.rows.file_kinds import FileKind
from etrace.report.comparison.build import BYTES, NS, NUMBER, Build, prepare
from etrace.report.products import MAX_MODULES, Made, made_of
from etrace.spec.database import NONE
from etrace.timing.noise import Times, bound, bounds

#: of what a command wrote
N_LINES = 5
#: what times of commands are
CPU_TIME, WORK = "CPU time", "time without waits"


class Figure(NamedTuple):
    """A number of both builds, None where it is not known.

    With repeated builds a time is the mean of its side, and `noise` is what a change must exceed.
    """

    unit: str
    before: float | None
    after: float | None
    noise: float | None = None

    @property
    def change(self) -> float | None:
        """What was added; None when unknown."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def ratio(self) -> float | None:
        """The change as a part of what was before; None when unknown, infinite from 0."""
        if self.before is None or self.change is None:
            return None
        if not self.before:
            return math.copysign(math.inf, self.change) if self.change else 0.0
        return self.change / self.before

    @property
    def is_noise(self) -> bool:
        """Whether builds without a change differ as much; False when that is not known."""
        return self.noise is not None and self.change is not None and abs(self.change) <= self.noise


@dataclass(slots=True, eq=False)
class Cost:
    """The time of a program, of what ran for a target, or of equal commands; numbers of commands.

    `row` is one of the commands, in the second build where it is there. Of 100,000 commands few are
    shown, so the name of a command is made when it is asked for.
    """

    named: str | Build
    n: tuple[int, int]
    time: Figure
    row: int = NONE

    @property
    def name(self) -> str:
        """The name of the program, of the target or of the commands."""
        return self.named if isinstance(self.named, str) else self.named.name(self.row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cost):
            return NotImplemented
        own = (self.n, self.time, self.row, self.name)
        return own == (other.n, other.time, other.row, other.name)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Failure:
    """A command of the second build that failed and did not in the first."""

    name: str
    row: int
    status: int
    is_cause: bool  #: it made the build fail
    written: tuple[str, ...] = ()  #: the last lines that a cause wrote, if the trace has them


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """A linked module; the figures of a build without it are None."""

    name: str
    size: Figure
    dependencies: Figure
    headers: Figure

    @property
    def is_changed(self) -> bool:
        """Whether any figure differs."""
        figures = (self.size, self.dependencies, self.headers)
        return any(each.before != each.after for each in figures)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs; all lists have the largest change first.

    `costs` are the commands that both builds ran, `gone` and `new` those that one ran.
    """

    figures: Mapping[str, Figure]
    n_runs: tuple[int, int]
    times: str  #: CPU_TIME or WORK
    failed: tuple[Failure, ...]
    built: tuple[str, ...]
    no_longer_built: tuple[str, ...]
    modules: tuple[ModuleChange, ...]
    programs: tuple[Cost, ...]
    targets: tuple[Cost, ...]
    costs: tuple[Cost, ...]
    gone: tuple[Cost, ...]
    new: tuple[Cost, ...]
    headers: tuple[includes.Growth, ...]
    #: the two builds; rows of commands that only one ran, and pairs that match, equal ones together
    builds: tuple[Build, ...] = field(compare=False, repr=False)
    removed: tuple[int, ...] = field(compare=False, repr=False)
    added: tuple[int, ...] = field(compare=False, repr=False)
    groups: tuple[Sequence[tuple[int, int]], ...] = field(compare=False, repr=False)

    @property
    def is_noise_known(self) -> bool:
        """Whether builds were repeated."""
        return any(n > 1 for n in self.n_runs)

    def changed(self, sign: int) -> list[Cost]:
        """Return the commands that are slower (1) or faster (-1), beyond the noise if known."""
        return [
            each for each in self.costs
            if (each.time.change or 0) * sign > 0 and not each.time.is_noise
        ]  # fmt: skip


def compare(
    before: Image, after: Image, runs: tuple[Sequence[Image], Sequence[Image]] = ((), ())
) -> Comparison:
    """Compare two builds; `runs` are more runs of each without a change. EtraceError."""
    return _Compared(before, after, runs).comparison()


class _Compared:
    def __init__(
        self, before: Image, after: Image, runs: tuple[Sequence[Image], Sequence[Image]]
    ) -> None:
        own, numbers = roots(before, after), Numbers()
        self.a, self.b = Build(before, own[0], numbers), Build(after, own[1], numbers)
        self.repeated = tuple(
            [first, *(Build(run, roots(first.image, run)[1], numbers) for run in more)]
            for first, more in zip((self.a, self.b), runs, strict=True)
        )
        prepare([build for side in self.repeated for build in side])
        self.matched = match(self.a.side, self.b.side)

    @cached_property
    def groups(self) -> list[list[tuple[int, int]]]:
        """The commands that match, those together that are equal in the first build."""
        groups = defaultdict[int, list[tuple[int, int]]](list)
        for pair in self.matched.pairs:
            groups[self.a.side.whole[pair[0]]].append(pair)
        return list(groups.values())

    def comparison(self) -> Comparison:
        a, b = self.a, self.b
        is_cpu = a.times["cpu"] is not None and b.times["cpu"] is not None
        built, gone = _names_of(b, a), _names_of(a, b)
        return Comparison(
            figures=dict(self.figures()),
            n_runs=(len(self.repeated[0]), len(self.repeated[1])),
            times=CPU_TIME if is_cpu else WORK,
            failed=tuple(self.failed()),
            built=built,
            no_longer_built=gone,
            modules=tuple(self.modules()),
            programs=self.table(Build.programs),
            targets=self.table(Build.targets),
            costs=self.costs(),
            gone=_alone(a, self.matched.removed, 0),
            new=_alone(b, self.matched.added, 1),
            headers=tuple(_headers(a, b)),
            builds=(a, b),
            removed=self.matched.removed,
            added=self.matched.added,
            groups=tuple(self.groups),
        )

    def figures(self) -> Iterator[tuple[str, Figure]]:
        for name in self.a.times:
            sides = [[build.times[name] for build in side] for side in self.repeated]
            known = [[n for n in side if n is not None] for side in sides]
            times = (known[0], known[1])
            means = [fmean(side) if side else None for side in known]
            yield name, Figure(NS, means[0], means[1], bound(times) if all(known) else None)
        for name, (unit, n) in self.a.counts.items():
            yield name, Figure(unit, n, self.b.counts[name][1])

    def table(self, of: Callable[[Build], dict[Hashable, tuple[int, int]]]) -> tuple[Cost, ...]:
        """Compare programs or targets."""
        sides = [[of(build) for build in side] for side in self.repeated]
        names = list(dict.fromkeys(name for side in sides for name in side[0]))
        times: list[Times] = [
            ([run.get(name, (0, 0))[1] for run in sides[0]],
             [run.get(name, (0, 0))[1] for run in sides[1]])
            for name in names
        ]  # fmt: skip
        counts = [(sides[0][0].get(n, (0, 0))[0], sides[1][0].get(n, (0, 0))[0]) for n in names]
        return _costs([str(name) for name in names], counts, times, [NONE] * len(names))

    # ---- commands ----

    def costs(self) -> tuple[Cost, ...]:
        """Compare the commands that both builds ran."""
        matchings = [[match(side[0].side, run.side) for run in side[1:]] for side in self.repeated]
        reach = [[dict(each.pairs) for each in side] for side in matchings]
        sides = [tuple(zip(*pairs, strict=True)) for pairs in self.groups]
        times = [(self._times(0, a, reach[0]), self._times(1, b, reach[1])) for a, b in sides]
        counts = [(len(pairs), len(pairs)) for pairs in self.groups]
        rows = [pairs[0][1] for pairs in self.groups]
        return _costs([self.b] * len(rows), counts, times, rows)

    def _times(
        self, side: int, rows: Sequence[int], reach: Sequence[Mapping[int, int]]
    ) -> list[float]:
        """Return the time of equal commands in each run of a side that has all of them."""
        work_ns = self.repeated[side][0].path[1]
        found = [float(sum([work_ns[row] for row in rows]))]
        for run, others in zip(self.repeated[side][1:], reach, strict=True) if reach else ():
            if all(row in others for row in rows):
                found.append(float(sum(run.path[1][others[row]] for row in rows)))
        return found

    def failed(self) -> Iterator[Failure]:
        """Yield what failed newly, what made the build fail first."""
        a, b = self.a, self.b
        commands = Commands(b.image)
        causes = {commands.rows[number]: number for number in find_failures(commands).commands}
        before, after = a.side.failed, b.side.failed
        found = [row for row in self.matched.added if row in after]
        for pairs in self.groups:
            newly = [y for x, y in pairs if y in after and x not in before]
            repaired = sum(x in before and y not in after for x, y in pairs) if newly else 0
            found += newly[: max(0, len(newly) - repaired)]
        start = b.image["executions"]["start_ns"]
        for row in sorted(found, key=lambda row: (row not in causes, start[row])):
            is_cause = row in causes
            lines = last_lines(commands, causes[row], N_LINES) if is_cause else []
            written = tuple(line.decode(errors="surrogateescape") for line in lines)
            yield Failure(b.name(row), row, b.side.status(row) or 0, is_cause, written)

    # ---- modules ----

    def modules(self) -> Iterator[ModuleChange]:
        """Compare the modules of which one is among the largest of its build."""
        mine, other = self._made()
        names = list(dict.fromkeys([*other, *mine]))
        for name in names:
            yield _module(self.b.shown(name), mine.get(name), other.get(name))

    def _made(self) -> tuple[dict[bytes, Made], dict[bytes, Made]]:
        named = [{build.side.paths[m.path]: m for m in build.modules} for build in (self.a, self.b)]
        wanted = {name for own in named for name in list(own)[:MAX_MODULES]}
        found = []
        for build, own in zip((self.a, self.b), named, strict=True):
            kept = {name: module for name, module in own.items() if name in wanted}
            found.append(
                dict(zip(kept, made_of(build.image, kept.values(), build.kinds), strict=True))
            )
        return found[0], found[1]


def _module(name: str, before: Made | None, after: Made | None) -> ModuleChange:
    def figure(unit: str, of: Callable[[Made], int]) -> Figure:
        pair = [None if made is None else of(made) for made in (before, after)]
        return Figure(unit, *(None if n == NONE else n for n in pair))

    return ModuleChange(
        name,
        figure(BYTES, lambda made: made.n_bytes),
        figure(NUMBER, lambda made: made.n_files.total()),
        figure(NUMBER, lambda made: made.n_files[FileKind.HEADER]),
    )


def _costs(
    named: Iterable[str | Build],
    counts: Sequence[tuple[int, int]],
    times: Sequence[Times],
    rows: Sequence[int],
) -> tuple[Cost, ...]:
    """Put times with their noise, the largest change first."""
    is_repeated = any(len(side) > 1 for own in times for side in own)
    noise: Sequence[float | None] = (bounds(times) if is_repeated else None) or [None] * len(times)
    return _by_change([
        Cost(name, n, Figure(NS, _mean(own[0]), _mean(own[1]), noise_ns), row)
        for name, n, own, noise_ns, row in zip(named, counts, times, noise, rows, strict=True)
    ])  # fmt: skip


def _mean(times: Sequence[float]) -> float:
    return times[0] if len(times) == 1 else fmean(times)


def _by_change(costs: list[Cost]) -> tuple[Cost, ...]:
    """Return costs with the largest change first, equal changes by name."""

    def change(cost: Cost) -> float:
        return -abs(cost.time.change or 0)

    found = list[Cost]()
    for _, equal in groupby(sorted(costs, key=change), key=change):
        own = list(equal)
        found += sorted(own, key=lambda cost: cost.name) if len(own) > 1 else own
    return tuple(found)


def _alone(build: Build, rows: Sequence[int], side: int) -> tuple[Cost, ...]:
    """Return the commands that only one build ran, the longest first."""
    groups = defaultdict[Hashable, list[int]](list)
    for row in rows:
        groups[build.side.whole[row]].append(row)
    found = []
    for own in groups.values():
        work_ns = sum(map(build.path[1].__getitem__, own))
        n, time = ((0, len(own)), (0, work_ns)) if side else ((len(own), 0), (work_ns, 0))
        found.append(Cost(build, n, Figure(NS, *time), own[0]))
    return _by_change(found)


def _names_of(build: Build, other: Build) -> tuple[str, ...]:
    """Return the files that only one of two builds made, sorted."""
    only = build.written.keys() - other.written.keys()
    return tuple(
        build.shown(name) for name in sorted(only) if build.is_product(build.written[name])
    )


def _headers(before: Build, after: Build) -> list[includes.Growth]:
    if before.headers is None or after.headers is None:
        return []
    return includes.grown((before.image, before.headers), (after.image, after.headers))
