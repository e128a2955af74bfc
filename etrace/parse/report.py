# SPDX-License-Identifier: Apache-2.0
"""What a parser run has counted, and what went wrong in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ProblemKind(Enum):
    """A kind of problem: the native parser's name, what happened, and what it cost."""

    NO_PREFIX = ("no-prefix", "lines without a prefix N,N,N,N!", "the lines are left out")
    UNKNOWN_TAG = ("unknown-tag", "lines with an unknown tag", "the lines are left out")
    BAD_ARGUMENTS = (
        "bad-arguments",
        "events with missing, foreign or malformed arguments",
        "the events are left out",
    )
    WRONG_UPID = (
        "wrong-upid",
        "environment of a upid other than 0, or other events of upid 0",
        "the events are left out",
    )
    STRAY_STRING = (
        "stray-string",
        "strings that belong to no event",
        "the lines are left out",
    )
    BAD_STRING = (
        "bad-string",
        "events whose strings are not those that their arguments announce",
        "the events are left out",
    )
    INCOMPLETE = ("incomplete", "events that lack strings", "the events are left out")
    CUT_OFF = (
        "cut-off",
        "events that the end of the trace cuts off",
        "the events are left out",
    )
    NO_FOLLOWER = (
        "no-follower",
        "clones, renames and links whose outcome is missing",
        "the events are left out",
    )
    NO_LEADER = (
        "no-leader",
        "outcomes of a clone, rename, link or mount that is missing",
        "the events are left out",
    )
    SECOND_PARENT = (
        "second-parent",
        "forks of a process that another one had forked before",
        "the later forks are left out",
    )
    NO_ENVIRONMENT = (
        "no-environment",
        "environment groups without a variable",
        "the groups are left out",
    )
    LOST_EVENTS = ("lost-events", "events that the kernel lost", "nothing is known of them")
    TOO_MANY_PIPES = (
        "too-many-pipes",
        "traces with more pipe descriptors than can be followed",
        'every "i" is left empty',
    )

    def __init__(self, native_name: str, what: str, cost: str) -> None:
        self.native_name = native_name
        self.what = what
        self.cost = cost


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem in one run: how often, and the first places (input, line from 1 on)."""

    kind: ProblemKind
    count: int
    places: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        places = ", ".join(f"{name}:{line}" for name, line in self.places)
        more = ", ..." if self.count > len(self.places) and self.places else ""
        where = f" ({places}{more})" if places else ""
        return f"{self.count} x {self.kind.what}{where}: {self.kind.cost}"


@dataclass(frozen=True, slots=True)
class ParseReport:
    """Counts of one run; `events` is by tag, `files` counts the records of opened files."""

    size_bytes: int
    lines: int
    events: Mapping[str, int]
    processes: int
    executions: int
    entries: int
    files: int
    paths: int
    pipe_links: int
    seconds: float
    problems: tuple[Problem, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left out."""
        return not self.problems
