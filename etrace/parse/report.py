# SPDX-License-Identifier: Apache-2.0
"""The counts of a parser run, and its problems as text."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from etrace.figures import agree

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT_OUT = "left out"


class ProblemKind(Enum):
    """A kind of problem: the native parser's name, the event (see agree()), the consequence."""

    NO_PREFIX = ("no-prefix", "line{s} without a prefix N,N,N,N!", LEFT_OUT)
    UNKNOWN_TAG = ("unknown-tag", "line{s} with an unknown tag", LEFT_OUT)
    BAD_ARGUMENTS = (
        "bad-arguments",
        "event{s} with missing, unexpected or malformed arguments",
        LEFT_OUT,
    )
    WRONG_UPID = (
        "wrong-upid",
        "event{s} of upid 0 other than environment, or environment of another upid",
        LEFT_OUT,
    )
    STRAY_STRING = (
        "stray-string",
        "string{s} that belong{s|} to no event",
        LEFT_OUT,
    )
    BAD_STRING = (
        "bad-string",
        "event{s} whose strings do not match {its|their} arguments",
        LEFT_OUT,
    )
    INCOMPLETE = ("incomplete", "event{s} that lack{s|} strings", LEFT_OUT)
    CUT_OFF = (
        "cut-off",
        "event{s} that the end of the trace cuts off",
        LEFT_OUT,
    )
    NO_FOLLOWER = (
        "no-follower",
        "clone{s}, rename{s} or link{s} whose outcome is missing",
        LEFT_OUT,
    )
    NO_LEADER = (
        "no-leader",
        "outcome{s} of a clone, rename, link or mount that is missing",
        LEFT_OUT,
    )
    SECOND_PARENT = (
        "second-parent",
        "fork{s} of a process that another fork made before",
        LEFT_OUT,
    )
    NO_ENVIRONMENT = (
        "no-environment",
        "environment group{s} without a variable",
        LEFT_OUT,
    )
    LOST_EVENTS = ("lost-events", "event{s} that the kernel lost", "the trace ends there")
    TOO_MANY_PIPES = (
        "too-many-pipes",
        "trace{s} with more pipe descriptors than can be followed",
        'every "i" is empty',
    )
    TOO_MANY_MOVES = (
        "too-many-moves",
        "trace{s} with more renamed directories than can be followed",
        "files below them keep their old names",
    )

    def __init__(self, native_name: str, what: str, cost: str) -> None:
        self.native_name = native_name
        self.what = what
        self.cost = cost


class Problem(NamedTuple):
    """One kind of problem in one run: its number, and the first places (input, line from 1 on)."""

    kind: ProblemKind
    n_times: int
    places: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        places = ", ".join(f"{name}:{line}" for name, line in self.places)
        more = ", ..." if self.n_times > len(self.places) and self.places else ""
        where = f" ({places}{more})" if places else ""
        return f"{agree(self.n_times, self.kind.what)}{where}: {self.kind.cost}"


class ParseReport(NamedTuple):
    """Counts of one run; `events` is by tag, `files` counts the records of opened files."""

    size_bytes: int
    lines: int
    events: Mapping[str, int]
    processes: int
    executions: int
    files: int
    paths: int
    pipe_links: int
    seconds: float
    problems: tuple[Problem, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left out."""
        return not self.problems
