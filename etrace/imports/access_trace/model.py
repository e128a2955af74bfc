# SPDX-License-Identifier: Apache-2.0
"""A file access trace as values. Text is bytes: a path has any, except for line ends.

Operations name a pid. A pid that comes again has several lines in the block of processes; a
`Process` operation begins the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from etrace.imports.access_trace.names import OPERATIONS

VERSIONS = (1, 2, 3)
#: an attribute that does not apply
NOT_APPLICABLE = 0xFFFFFFFF
#: an exit code that nobody reported
NO_EXIT_CODE = 0xBAAAAAAD
#: .NET's ticks of 100 ns since the year 1
TICK_NS = 100
EPOCH_TICKS = 621355968000000000


class Layout(StrEnum):
    """Where paths are: version 1 had both, all versions since 2024-12 have them in one block."""

    SPLIT = "split"  #: in both blocks
    MANIFEST = "manifest"  #: all in the first; the second is empty


class Process(NamedTuple):
    """A process; times are in ticks."""

    pid: int
    program: bytes
    parent: int
    start: int
    end: int
    exit_code: int
    command_line: bytes


class Operation(NamedTuple):
    """One access. One of `manifest` and `path` numbers its path, the other is None."""

    id: int
    pid: int
    manifest: int | None
    path: int | None
    operation: int
    access: int
    error: int
    is_augmented: bool
    pattern: bytes


class Correlation(NamedTuple):
    """Which access an operation reports, and to which other it belongs; 0 is not one."""

    id: int
    access: int
    other: int


class Attributes(NamedTuple):
    """The flags of an open, and the attributes of what was opened."""

    id: int
    flags: int
    opened: int


@dataclass(slots=True)
class AccessTrace:
    """A whole file: dictionaries by the numbers of the file, in its order."""

    version: int
    operations: dict[int, bytes] = field(default_factory=dict)
    accesses: dict[int, bytes] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    manifest: dict[int, bytes] = field(default_factory=dict)
    paths: dict[int, bytes] = field(default_factory=dict)
    events: list[Operation] = field(default_factory=list)
    correlations: list[Correlation] = field(default_factory=list)
    attributes: list[Attributes] = field(default_factory=list)

    def path_of(self, event: Operation) -> bytes:
        """Return the path of an operation, empty when it has none."""
        if event.manifest is not None:
            return self.manifest.get(event.manifest, b"")
        return self.paths.get(event.path, b"") if event.path is not None else b""


def ticks(unix_ns: int) -> int:
    """Return a time since 1970 in ticks."""
    return unix_ns // TICK_NS + EPOCH_TICKS


def unix_ns(when: int) -> int:
    """Return ticks as ns since 1970."""
    return (when - EPOCH_TICKS) * TICK_NS


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
        """Add a process that its line, or its first operation, names."""
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
