# SPDX-License-Identifier: Apache-2.0
"""What every capture backend is: it can say whether it works here, and it can trace a command.

A backend turns a command into a `.nfsdb` (docs/format.md) and a `.nfsdb.stats`; whatever it is made
of, the lines are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from etrace.capture.options import Options

__all__ = ["Backend", "Options", "Outcome", "Probe", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts so far, sent about twice a second while a build runs; sizes in bytes."""

    processes: int = 0
    live: int = 0
    executions: int = 0
    opens: int = 0
    n_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a traced command ended.

    `status` is the exit status of the command, or of the backend when that failed (125);
    `signal` is the signal that ended the command, 0 when none did; `stats` is the content of the
    stats file, empty when the backend could not write one; `remarks` are for people, those that the
    backend has not told them already; `is_told` says that it has told what was captured.
    """

    status: int
    signal: int
    stats: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a backend works here: tried, not guessed. `reason` and `hint` are for people.

    `expected` says that nobody would wonder why it does not.
    """

    works: bool
    reason: str
    hint: str = ""
    expected: bool = False


class Backend(Protocol):
    """One way to see what a build does."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def description(self) -> str:
        """One line for people."""

    def obstacle(self) -> Probe | None:
        """Return what certainly stands in the way, found at no cost; None when nothing is known."""

    def is_out_of_question(self) -> bool:
        """Whether nobody would expect it to work here; asked at each start, so it must be cheap."""

    def probe(self) -> Probe:
        """Try the backend on a trivial command."""

    def become(self, command: list[str], options: Options) -> None:
        """Replace this process by the capture; return when it takes this process to drive it."""

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command` until it ends; CaptureError when it could not be started."""
