# SPDX-License-Identifier: Apache-2.0
"""Processes and threads of a log: who made whom, working directories and descriptors.

A pid that ended may come again: each task has a upid of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from libetrace.core.regular_file import PATH_MAX

from etrace.imports.strace.lines import Line
from etrace.spec import syscalls

CLONE_FS, CLONE_FILES, CLONE_THREAD, CLONE_NEWPID = 0x200, 0x400, 0x10000, 0x20000000
#: descriptors of a process that are followed; a forged log may fork with very many
MAX_DESCRIPTORS = 4096
#: of all processes together by forks; a child beyond that begins without
MAX_COPIED = 1 << 20
FORKS = frozenset(syscalls.load().families()["forks"])


@dataclass(slots=True)
class Descriptors:
    """An open descriptor -> its path, where the log has it; those with FD_CLOEXEC."""

    paths: dict[int, bytes | None] = field(default_factory=dict)
    cloexec: set[int] = field(default_factory=set)
    copied: list[int] = field(default_factory=lambda: [0])  #: by all processes
    n_copied: int = 0
    n_users: int = 1

    def copy(self) -> Descriptors:
        """Return what a fork gives the child: nothing when all have copied too much."""
        n_copied = len(self.paths) + len(self.cloexec)
        if self.copied[0] + n_copied > MAX_COPIED:
            return Descriptors(copied=self.copied)
        self.copied[0] += n_copied
        return Descriptors(dict(self.paths), set(self.cloexec), self.copied, n_copied)

    def share(self) -> Descriptors:
        """Return the same for another task (CLONE_FILES)."""
        self.n_users += 1
        return self

    def leave(self) -> None:
        """Count one task less; the last one gives back what was copied."""
        self.n_users -= 1
        if not self.n_users:
            self.copied[0] -= self.n_copied

    def own(self) -> Descriptors:
        """Return what a task has after an exec, which leaves a shared table."""
        if self.n_users == 1:
            return self
        own = self.copy()
        self.leave()
        return own

    def open(self, fd: int, path: bytes | None, *, cloexec: bool) -> None:
        """Add a descriptor."""
        if len(self.paths) >= MAX_DESCRIPTORS and fd not in self.paths:
            return
        self.paths[fd] = path if path is None or len(path) <= PATH_MAX else None
        self.mark(fd, cloexec)

    def mark(self, fd: int, cloexec: bool) -> None:
        """Set or clear FD_CLOEXEC."""
        cloexec = cloexec and (fd in self.paths or len(self.cloexec) < MAX_DESCRIPTORS)
        (self.cloexec.add if cloexec else self.cloexec.discard)(fd)

    def close(self, fd: int) -> None:
        """Remove a descriptor."""
        self.paths.pop(fd, None)
        self.cloexec.discard(fd)


@dataclass(slots=True)
class Directory:
    """A working directory, which threads share; empty when it is not known."""

    path: bytes

    def enter(self, path: bytes) -> None:
        """Change it. One that is longer than PATH_MAX is not known, as in the kernel."""
        self.path = path if len(path) <= PATH_MAX else b""


@dataclass(slots=True)
class Task:
    """A process or thread.

    `begun` is its unfinished call, `program` what it executed (PI), `status` that of exit_group.
    `is_inside`: it is in a PID namespace and gets other numbers than strace; `sends_inside`: its
    children are.
    """

    upid: int
    pid: int
    directory: Directory
    descriptors: Descriptors
    begun: Line | None = None
    status: int | None = None
    program: bytes = b""
    last_ns: int = 0
    is_over: bool = False
    is_inside: bool = False
    sends_inside: bool = False

    def child(self, upid: int, pid: int, flags: int) -> Task:
        """Return the child that a call with these flags makes."""
        directory = self.directory if flags & CLONE_FS else Directory(self.directory.path)
        descriptors = (self.descriptors.share if flags & CLONE_FILES else self.descriptors.copy)()
        inside = self.is_inside or self.sends_inside or bool(flags & CLONE_NEWPID)
        return Task(upid, pid, directory, descriptors, program=self.program, is_inside=inside)


class Tasks:
    """The tasks of a log by pid. A pid that ended may come again."""

    def __init__(self, pid_bits: int) -> None:
        self._pid_bits = pid_bits
        self._n_tasks = 0
        self._copied = [0]
        self.live: dict[int, Task] = {}

    def upid(self, pid: int) -> int:
        """Return the next unique process id."""
        self._n_tasks += 1
        return (self._n_tasks << self._pid_bits) | (pid & ((1 << self._pid_bits) - 1))

    def root(self, pid: int, directory: bytes) -> Task:
        """Add a task whose parent is not in the log."""
        descriptors = Descriptors(copied=self._copied)
        return self._add(Task(self.upid(pid), pid, Directory(directory), descriptors))

    def fork(self, parent: Task, pid: int, flags: int) -> Task:
        """Add the child of a task."""
        return self._add(parent.child(self.upid(pid), pid, flags))

    def rename(self, task: Task, pid: int) -> None:
        """Give a task another pid: its first known one, or that of the leader in whose place it is.

        It keeps its upid.
        """
        if self.live.get(task.pid) is task:
            del self.live[task.pid]
        task.pid = pid
        self._add(task)

    def end(self, task: Task) -> None:
        """Remove a task that ended."""
        task.is_over = True
        task.descriptors.leave()
        task.descriptors = Descriptors()
        if self.live.get(task.pid) is task:
            del self.live[task.pid]

    def sole(self) -> Task | None:
        """Return the only live task, None when there are several."""
        return next(iter(self.live.values())) if len(self.live) == 1 else None

    def _add(self, task: Task) -> Task:
        self.live[task.pid] = task
        return task
