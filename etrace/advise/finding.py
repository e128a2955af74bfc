# SPDX-License-Identifier: Apache-2.0
"""What a rule returns: a fault of a build, its evidence, what to do, and what that gains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from etrace.figures import seconds
from etrace.spec.database import NONE


class Sure(StrEnum):
    """How sure a finding is."""

    CERTAIN = "certain"  #: the trace shows it
    LIKELY = "likely"  #: the trace shows the cost; the remedy may not apply to all of it
    POSSIBLE = "possible"  #: it rests on an assumption, which the finding names


@dataclass(frozen=True, slots=True)
class Gain:
    """How much shorter the traced build would have been; times in ns.

    `is_bound`: at most that; how much of it a remedy gains is not known. `when` is empty for a
    build like the traced one, else names the build that gains: `the next configure run`.
    """

    time_ns: int
    error_ns: int
    elapsed_ns: int
    is_bound: bool = False
    when: str = ""

    @property
    def share(self) -> float:
        """The gain as a part of the elapsed time of the traced build."""
        return self.time_ns / self.elapsed_ns if self.elapsed_ns else 0.0

    def __str__(self) -> str:
        """Return `gains 3.200 s of 9.100 s (35%), give or take 0.300 s`."""
        most = "at most " if self.is_bound else ""
        text = f"gains {most}{seconds(self.time_ns)} of {seconds(self.elapsed_ns)}"
        text += f" ({self.share:.0%})"
        if not self.is_bound:
            text += f", give or take {seconds(self.error_ns)}"
        return f"{text}, in {self.when}" if self.when else text


@dataclass(frozen=True, slots=True)
class Evidence:
    """A command (row of `executions`) or a file (row of `paths`), and what it shows."""

    text: str
    time_ns: int | None = None
    execution: int = NONE
    path: int = NONE


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `id` is stable; `gain` is None for one that makes a build less robust.

    `n_evidence` is how many commands or files there are; `evidence` has the ones that cost most.
    """

    id: str
    title: str
    what: str
    how: str
    sure: Sure
    why_sure: str
    gain: Gain | None
    evidence: tuple[Evidence, ...]
    n_evidence: int
