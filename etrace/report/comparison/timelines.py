# SPDX-License-Identifier: Apache-2.0
"""A comparison -> the timelines of both builds, to be drawn one above the other.

They have one time scale, and a program has one colour in both. They show the commands that started
no other, each in the lowest free lane. Neighbours that are too short to be seen share a box, which
looks like those of them that took most of its time.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from libetrace.depend.execution_facts import find_parents

from etrace.query.rows.commands import statuses
from etrace.report.comparison.build import Build
from etrace.report.comparison.compare import Comparison, Cost
from etrace.spec.database import NONE

#: programs with a colour of their own, and the number of the colour of all others
N_COLOURS = OTHERS = 8
#: what can be seen, as a part of the time scale
LEAST = 0.001
#: a command is shown as slower from so much on
LEAST_RATIO = 0.1
#: lanes that are drawn
MAX_LANES = 40


class Mark(StrEnum):
    """Why a command is marked."""

    SLOWER = "slower"
    NEW = "new"
    GONE = "gone"


class Box(NamedTuple):
    """A command, or `n` that are neighbours in a lane; times in ns since the build began."""

    lane: int
    start_ns: int
    end_ns: int
    colour: int
    mark: Mark | None
    is_failed: bool
    row: int  #: of the longest in `executions`
    n: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One build; `left_out` is how many commands were in further lanes."""

    boxes: tuple[Box, ...]
    n_lanes: int
    elapsed_ns: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Timelines:
    """Both builds; `programs` are those that have colours, `span_ns` is the whole time scale."""

    sides: tuple[Timeline, Timeline]
    programs: tuple[str, ...]
    has_others: bool
    span_ns: int
    slower: dict[int, Cost]  #: by row of the second build


class _Command(NamedTuple):
    row: int
    start_ns: int
    end_ns: int
    program: str


def timelines(found: Comparison) -> Timelines:
    """Return the timelines of two builds."""
    commands = [_leaves(build) for build in found.builds]
    time_ns = Counter[str]()
    for own in commands:
        for each in own:
            time_ns[each.program] += each.end_ns - each.start_ns
    programs = tuple(name for name, _ in time_ns.most_common(N_COLOURS))
    colours = {name: number for number, name in enumerate(programs)}
    elapsed = [build.times["wall"] or 0 for build in found.builds]
    span_ns = max(1, *elapsed)
    slower = dict(_slower(found, span_ns * LEAST))
    marks: tuple[dict[int, Mark], dict[int, Mark]] = (
        dict.fromkeys(found.removed, Mark.GONE),
        dict.fromkeys(slower, Mark.SLOWER) | dict.fromkeys(found.added, Mark.NEW),
    )
    sides = [
        _timeline(build, own, colours, of, span_ns * LEAST)
        for build, own, of in zip(found.builds, commands, marks, strict=True)
    ]
    return Timelines((sides[0], sides[1]), programs, len(time_ns) > len(programs), span_ns, slower)


def _leaves(build: Build) -> list[_Command]:
    """Return the commands that started no other, by their start."""
    table, is_parent = build.image["executions"], find_parents(build.image)
    start, elapsed, binary = table["start_ns"], table["elapsed_ns"], table["binary"]
    first = min(start, default=0)
    names = {
        path: build.shown(build.image.path_string(path).rpartition(b"/")[2])
        for path in set(binary) - {NONE}
    }
    return [
        _Command(row, start[row] - first, start[row] - first + elapsed[row], names[binary[row]])
        for row in build.side.commands
        if not is_parent[row] and elapsed[row] > 0
    ]


def _slower(found: Comparison, least_ns: float) -> Iterator[tuple[int, Cost]]:
    """Yield rows of the second build that are slower, beyond the noise, by what can be seen."""
    rows = {pairs[0][1]: pairs for pairs in found.groups}
    for cost in found.changed(1):
        change, ratio = cost.time.change or 0, cost.time.ratio or 0
        if change >= least_ns and ratio >= LEAST_RATIO:
            yield from ((other, cost) for _, other in rows[cost.row])


def _timeline(
    build: Build, commands: Sequence[_Command], colours: dict[str, int], marks: dict[int, Mark],
    least_ns: float,
) -> Timeline:  # fmt: skip
    lanes = list[list[_Command]]()
    for each, lane in zip(commands, _lanes(commands), strict=True):
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(each)
    status = statuses(build.image)
    boxes = [
        _box(lane, part, colours, marks, status)
        for lane, own in enumerate(lanes[:MAX_LANES])
        for part in _parts(own, least_ns)
    ]
    left_out = sum(map(len, lanes[MAX_LANES:]))
    n_lanes = min(len(lanes), MAX_LANES)
    return Timeline(tuple(boxes), n_lanes, build.times["wall"] or 0, left_out)


def _lanes(commands: Iterable[_Command]) -> Iterator[int]:
    """Yield the lane of each command: the lowest in which none runs."""
    free, busy, n = list[int](), list[tuple[int, int]](), 0
    for each in commands:
        while busy and busy[0][0] <= each.start_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, n = n, n + 1
        heapq.heappush(busy, (each.end_ns, lane))
        yield lane


def _parts(lane: Iterable[_Command], least_ns: float) -> Iterator[list[_Command]]:
    """Yield the commands of each box of a lane."""
    part = list[_Command]()
    for each in lane:
        is_short = each.end_ns - each.start_ns < least_ns
        if part and (not is_short or each.end_ns - part[0].start_ns > least_ns):
            yield part
            part = []
        part.append(each)
        if not is_short:
            yield part
            part = []
    if part:
        yield part


def _box(
    lane: int, part: Sequence[_Command], colours: dict[str, int], marks: dict[int, Mark],
    status: Sequence[int],
) -> Box:  # fmt: skip
    def looks(each: _Command) -> tuple[int, Mark | None, bool]:
        has_failed = status[each.row] not in (0, NONE)
        return colours.get(each.program, OTHERS), marks.get(each.row), has_failed

    look, longest = looks(part[0]), part[0]
    if len(part) > 1:
        time_ns = Counter[tuple[int, Mark | None, bool]]()
        for each in part:
            time_ns[looks(each)] += each.end_ns - each.start_ns
        look = time_ns.most_common(1)[0][0]
        longest = max(part, key=lambda each: each.end_ns - each.start_ns)
    return Box(lane, part[0].start_ns, part[-1].end_ns, *look, longest.row, len(part))
