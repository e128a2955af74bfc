# SPDX-License-Identifier: Apache-2.0
"""The processes of a trace: which process an operation belongs to, and who made whom.

Operations name a pid. A pid that comes again has several lines in the block of processes; a
`Process` operation begins the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from etrace.imports.access_trace.model import Process
from etrace.imports.access_trace.names import OPERATIONS

PROCESS, EXEC, EXIT = b"Process", b"ProcessExec", b"ProcessExit"
assert {PROCESS, EXEC, EXIT} <= OPERATIONS.keys()


@dataclass(slots=True, eq=False)
class Instance:
    """One process: `upid`, and its line where it has one."""

    upid: int
    pid: int
    line: Process | None
    last_ns: int = 0
    n_open: int = 3
    has_begun: bool = False
    has_ended: bool = False


@dataclass(slots=True)
class Instances:
    """The processes by pid, in the order of their lines."""

    pid_bits: int
    all: list[Instance] = field(default_factory=list)
    _waiting: dict[int, list[Instance]] = field(default_factory=dict)
    _now: dict[int, Instance] = field(default_factory=dict)

    def add(self, pid: int, line: Process | None) -> Instance:
        """Add a process that its line, or its first operation, tells of."""
        mask = (1 << self.pid_bits) - 1
        made = Instance(((len(self.all) + 1) << self.pid_bits) | (pid & mask), pid, line)
        self.all.append(made)
        self._waiting.setdefault(pid, []).append(made)
        return made

    def of(self, pid: int, operation: bytes) -> Instance:
        """Return the process of an operation."""
        now = self._now.get(pid)
        is_new = now is None or (operation == PROCESS and now.has_begun)
        if is_new and self._waiting.get(pid):
            now = self._waiting[pid].pop(0)
        if now is None:
            now = self.add(pid, None)
            self._waiting[pid].clear()
        self._now[pid] = now
        return now

    def parent(self, child: Instance) -> Instance | None:
        """Return the process that a new one's line names as its parent, if the trace has it."""
        if child.line is None or child.line.parent == child.pid:
            return None
        found = self._now.get(child.line.parent)
        if found is None and (waiting := self._waiting.get(child.line.parent)):
            found = waiting[0]
        return found

    def rest(self) -> list[Instance]:
        """Return the processes without an operation."""
        return [each for each in self.all if not each.has_begun]
