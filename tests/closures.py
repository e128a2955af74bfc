# SPDX-License-Identifier: Apache-2.0
"""Dependencies the slow and obvious way: what tests compare libetrace.depend.graph with.

A write of a path counts for a read of it unless what was written was gone when the read began.

The relation is written down as it stands in docs/dependencies.md and followed to its fixpoint, use
by use, without lists in order of time and without anything kept between steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Build:
    """`process_of` gives the process of each execution; a pipe goes from writer to reader."""

    uses: Sequence[Use]
    process_of: Sequence[int]
    pipes: Sequence[tuple[int, int]]
    ends: Sequence[End] = ()


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
    states: set[State] = set()
    listed: set[int] = set()
    waiting = [
        state
        for root in roots
        for state in writers(build, root, last_content(build, root), float("inf"), left)
    ]
    while waiting:
        state = waiting.pop()
        if state in states:
            continue
        states.add(state)
        if left.pipes:
            waiting += sources(build, state, left)
        for use in reads(build, state, left):
            listed.add(use.path)
            if use.path not in left.stops:
                until = use.end if left.ordered else float("inf")
                waiting += writers(build, use.path, content_of(build, use), until, left)
    return listed - set(roots)


def content_of(build: Build, use: Use) -> float:
    """Return since when there was what a read found."""
    began = use.begin if use.since is None else use.since
    return max(
        (
            end.time
            for end in build.ends
            if end.path == use.path and (end.time < began if end.is_away else end.time <= began)
        ),
        default=float("-inf"),
    )


def last_content(build: Build, path: int) -> float:
    """Return since when there was what a path held last."""
    writes = [use for use in build.uses if use.path == path and use.writes]
    return max(
        (
            end.time
            for end in build.ends
            if end.path == path
            and any(end.time < w.begin if end.is_away else end.time <= w.end for w in writes)
        ),
        default=float("-inf"),
    )


def writers(build: Build, path: int, since: float, until: float, left: Left) -> Iterator[State]:
    """Yield who wrote what a path held from one time to another.

    And until when what they read before counts.
    """
    for use in build.uses:
        counts = use.writes and use.begin <= until and use.execution not in left.excluded
        counts = counts and (use.end >= since or not left.ordered)
        if counts and use.path == path:
            yield build.process_of[use.execution], use.end if left.ordered else float("inf")


def reads(build: Build, state: State, left: Left) -> Iterator[Use]:
    """Yield what a process read before some time."""
    process, until = state
    for use in build.uses:
        counts = use.reads and use.begin <= until and use.execution not in left.excluded
        if counts and build.process_of[use.execution] == process:
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
