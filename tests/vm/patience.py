# SPDX-License-Identifier: Apache-2.0
"""How long an emulator is waited for: its own time, not that of the wall clock.

Time in which it was ready to run and the machine ran others does not count (proc(5), schedstat of
Documentation/scheduler/sched-stats.rst: the second number of a thread is how long it waited in a
run queue, in ns). An emulator on a loaded machine so gets all the time that it needs, and one whose
guest hangs is ended as soon as ever. The time begins again with each thing that it gets done: a
slow machine is not a guest that hangs either.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
TICK_S = 0.5
SESSION = 3  # word of /proc/PID/stat after the name, which is in brackets
NS = 1e9


@dataclass(slots=True)
class OwnTime:
    """The time of a session of processes: `own_s` counts, `waited_s` it had no processor."""

    session: int
    proc: Path = PROC
    own_s: float = 0.0
    waited_s: float = 0.0
    _seen: dict[Path, int] = field(default_factory=dict)

    def advance(self, elapsed_s: float) -> None:
        """Take note of another `elapsed_s` of the wall clock.

        The thread that waited longest says how much of it was lost: others waited at the same time.
        """
        now = dict(self._waits())
        lost = max((ns - self._seen.get(thread, ns) for thread, ns in now.items()), default=0)
        self._seen = now
        lost_s = min(max(lost / NS, 0.0), elapsed_s)
        self.waited_s += lost_s
        self.own_s += elapsed_s - lost_s

    def __str__(self) -> str:
        waited = f", and {self.waited_s:.0f} s more in which it waited for a processor"
        return f"{self.own_s:.0f} s of its own time" + (waited if self.waited_s >= 1 else "")

    def _waits(self) -> Iterator[tuple[Path, int]]:
        # no glob() with a name after the pattern: it looks whether that exists, outside of `try`
        for process in self.proc.glob("[0-9]*"):
            try:
                stat = (process / "stat").read_text(errors="replace")
                if int(stat.rpartition(")")[2].split()[SESSION]) != self.session:
                    continue
                for thread in (process / "task").iterdir():
                    schedstat = thread / "schedstat"
                    yield schedstat, int(schedstat.read_text().split()[1])
            except (OSError, IndexError, ValueError):  # it has ended meanwhile
                continue


def wait(
    started: subprocess.Popen[bytes],
    seconds: float,
    warn_s: float,
    warn: Callable[[], None],
    done: Callable[[], int] = int,
) -> tuple[OwnTime, bool]:
    """Wait for the end, or until `seconds` of its own time passed in which `done()` did not change.

    Calls `warn` `warn_s` before. Return its time, and whether it ended. `started` leads a session
    of its own.
    """
    spent, last, warned = OwnTime(started.pid), time.monotonic(), False
    n_done, since_s = done(), 0.0
    while spent.own_s - since_s < seconds:
        try:
            started.wait(TICK_S)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            spent.advance(now - last)
            last = now
        else:
            return spent, True
        if not warned and (n_now := done()) != n_done:
            n_done, since_s = n_now, spent.own_s
        if not warned and spent.own_s - since_s >= seconds - warn_s:
            warned = True
            warn()
    return spent, False
