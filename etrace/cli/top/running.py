# SPDX-License-Identifier: Apache-2.0
"""A trace that is being written -> its new lines -> the programs that run now or have ended."""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture.files import TRACE, is_being_written
from etrace.compilers.tools import Tools, load
from etrace.errors import EtraceError, NothingFoundError
from etrace.nfsdb.files import CAPTURING
from etrace.query.rows.labels import PID_MASK, subject

# ---- lines ----

PIECE_BYTES = 1 << 20
#: a longer line is not a line of a trace
MAX_LINE_BYTES = 1 << 20


def find(directory: Path) -> Path:
    """Return the trace that is being written in a directory. EtraceError when there is none."""
    for name in (CAPTURING, TRACE):
        trace = directory / name
        if trace.is_file() and is_being_written(trace):
            return trace
    hint = "start a build in another terminal: etrace run -- make"
    if (directory / TRACE).exists():
        hint = f"its build has ended: etrace summary {directory}"
    raise NothingFoundError(f"{directory}: nothing is being traced here", hint)


class Follower:
    """Reads a growing trace; a line is given when it is whole."""

    def __init__(self, trace: Path) -> None:
        self._fd = os.open(trace, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise EtraceError(f"{trace}: not a file", "name the directory of a trace")
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """Yield what has come since the last time."""
        while piece := os.read(self._fd, PIECE_BYTES):
            *whole, self._rest = (self._rest + piece).split(b"\n")
            self._rest = self._rest if len(self._rest) <= MAX_LINE_BYTES else b""
            yield from whole

    def close(self) -> None:
        """Close the trace."""
        os.close(self._fd)


# ---- processes ----

LINE = re.compile(
    rb"(\d+),\d+,\d+,\d+!"
    rb"(New_proc|SysClone|SysCloneFailed|SchedFork|Exit|PI|A)\b(?:\[\d+\])?\|?(.*)",
    re.S,
)
STAMP = re.compile(rb"\d+,\d+,(\d+),(\d+)!")
CHILD = re.compile(rb"pid=(\d+)")
FLAGS = re.compile(rb"flags=(\d+)")
CLONE_THREAD = 0x10000
STATUS = re.compile(rb"status=(\d+)")
N_FAILURES = 200
#: an argument list longer than this says nothing more
N_WORDS = 4096


@dataclass(slots=True)
class Process:
    """One process that lives; `began_ns` is the start of its program."""

    upid: int
    parent: int
    began_ns: int
    path: bytes = b""
    argv: list[bytes] = field(default_factory=list)
    children: list[int] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """Its number in the tracer's namespace."""
        return self.upid & PID_MASK


@dataclass(frozen=True, slots=True)
class Failure:
    """A program that ended with a status other than 0."""

    label: str
    pid: int
    status: int
    at_ns: int


class Running:
    """The processes of a build at the end of what was read."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        #: the process of each thread, and flags of clones whose fork has not come yet, by upid
        self._threads: dict[int, int] = {}
        self._flags: dict[int, int] = {}
        self.failures: deque[Failure] = deque(maxlen=N_FAILURES)
        self.n_finished = self.n_failed = 0
        self.began_ns = self.now_ns = 0
        self._tools: Tools = load()

    def read(self, lines: Iterable[bytes]) -> None:
        """Take lines; what is not an event of a process is passed over."""
        for line in lines:
            if not (stamp := STAMP.match(line)):
                continue
            self.now_ns = max(self.now_ns, int(stamp[1]) * 10**9 + int(stamp[2]))
            self.began_ns = self.began_ns or self.now_ns
            if found := LINE.fullmatch(line):
                upid, tag, text = found.groups()
                self._take(int(upid), tag, text)

    def wait(self, ns: int) -> None:
        """Let time pass without an event."""
        self.now_ns += ns

    def _take(self, upid: int, tag: bytes, text: bytes) -> None:
        if tag in (b"SysClone", b"SysCloneFailed"):
            flags = FLAGS.search(text)
            self._flags[upid] = int(flags[1]) if flags else 0
            return
        is_thread = bool(self._flags.pop(upid, 0) & CLONE_THREAD)
        if tag == b"SchedFork":
            if child := CHILD.search(text):
                self._fork(self._threads.get(upid, upid), int(child[1]), is_thread=is_thread)
            return
        if upid in self._threads:
            if tag not in (b"New_proc", b"Exit"):
                return
            leader = self._threads.pop(upid)
            if tag == b"Exit":
                return
            if leader in self.processes:  # else it took its process over
                self._fork(leader, upid, is_thread=False)
        process = self.processes.get(upid)
        if process is None:
            if tag == b"Exit":
                return
            process = self._add(upid, -1)
        if tag == b"New_proc":
            process.argv, process.path, process.began_ns = [], b"", self.now_ns
        elif tag == b"PI":
            process.path = text
        elif tag == b"A" and len(process.argv) < N_WORDS:
            process.argv.append(text)
        elif tag == b"Exit":
            self._end(process, text)

    def _add(self, upid: int, parent: int) -> Process:
        made = self.processes[upid] = Process(upid, parent, self.now_ns)
        return made

    def _fork(self, parent: int, child: int, *, is_thread: bool) -> None:
        if parent not in self.processes:
            self._add(parent, -1)
        if is_thread and child not in self.processes:
            self._threads[child] = parent
            return
        if child not in self.processes:  # else its own lines came first, or the trace is odd
            self._add(child, -1)
        if self.processes[child].parent == -1 and child != parent:
            self.processes[child].parent = parent
            self.processes[parent].children.append(child)

    def _end(self, process: Process, text: bytes) -> None:
        self.n_finished += bool(process.argv)
        status = STATUS.search(text)
        if process.argv and status and int(status[1]):
            self.n_failed += 1
            failure = Failure(self.label(process), process.pid, int(status[1]), self.now_ns)
            self.failures.append(failure)
        del self.processes[process.upid]
        if parent := self.processes.get(process.parent):
            parent.children.remove(process.upid)
        for child in process.children:
            self.processes[child].parent = -1

    def label(self, process: Process) -> str:
        """Return a name that a person understands: `cc1 lvm.c`."""
        if not process.argv:
            parent = self.processes.get(process.parent)
            name = os.fsdecode(parent.path.rpartition(b"/")[2]) if parent else "process"
            return f"{name} (forked)"
        path = process.path or process.argv[0]
        words = (path.rpartition(b"/")[2], subject(self._tools, path, process.argv))
        return os.fsdecode(b" ".join(filter(None, words)))

    def tree(self) -> Iterator[tuple[int, Process]]:
        """Yield (depth, process), parents before their children, in the order of their starts."""
        tops = [each.upid for each in self.processes.values() if each.parent not in self.processes]
        rest = [(0, upid) for upid in reversed(tops)]
        while rest:
            depth, upid = rest.pop()
            process = self.processes[upid]
            yield depth, process
            rest += [(depth + 1, child) for child in reversed(process.children)]
