# SPDX-License-Identifier: Apache-2.0
"""The protocol of a capture backend, which traces a command and can test whether it works here.

A backend turns a command into a `.nfsdb` (docs/format.md) and a `.nfsdb.stats`. The lines do not
depend on the backend.
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
    stats file, empty when the backend could not write one; `remarks` are messages for the user that
    the backend has not printed; `is_reported`: it has printed the summary of the capture.
    """

    status: int
    signal: int
    stats: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a backend works here, by a trial. `reason` and `hint` are for the user.

    `expected`: it is normal that the backend does not work here.
    """

    works: bool
    reason: str
    hint: str = ""
    expected: bool = False


class Backend(Protocol):
    """One way to capture a build."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def description(self) -> str:
        """Description in one line."""

    def obstacle(self) -> Probe | None:
        """Return a known obstacle without a trial, None without one."""

    def is_out_of_question(self) -> bool:
        """Whether it is normal that it does not work here; must be cheap: each start calls it."""

    def probe(self) -> Probe:
        """Try the backend on a trivial command."""

    def become(self, command: list[str], options: Options) -> None:
        """Replace this process with the capture; return when the capture needs this process."""

    def run(
        self, command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
    ) -> Outcome:
        """Trace `command` until it ends; CaptureError when it could not be started."""
