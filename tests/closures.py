# SPDX-License-Identifier: Apache-2.0
"""Dependencies the slow and obvious way: what tests compare libetrace.depend.graph with.

A write of a path counts for a read of it unless what was written was gone when the read began.

The relation is written down as it stands in docs/dependencies.md and followed to its fixpoint, use
by use, without lists in order of time and without anything kept between steps.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


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
