# SPDX-License-Identifier: Apache-2.0
"""The lines of strace -> event lines.

Each line goes to its task; a call that ends there becomes events. Nothing is invented: what a log
does not have is left out and named once in the remarks.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from etrace.compilers.tools import RUNNER, load
from etrace.errors import EtraceError, SpecError
from etrace.figures import agree
from etrace.imports.event_lines import EventLines
from etrace.imports.strace import values
from etrace.imports.strace.calls import MAX_INT, U64, BadCallError, Calls
from etrace.imports.strace.lines import ENDS, Kind, Line, Result
from etrace.imports.strace.paths import Lexical, Resolver
from etrace.imports.strace.sources import Reading, Stamped, shown_directory
from etrace.imports.strace.tasks import CLONE_THREAD, FORKS, Task, Tasks
from etrace.spec import syscalls

#: calls that take effect when they begin
EARLY = frozenset((b"close", b"close_range", *FORKS))
#: calls by which a process, or its children, come into a PID namespace
NAMESPACES = frozenset((b"unshare", b"setns"))
#: calls after which a working directory that is shown is not the one before, or is inherited
MOVES = frozenset((b"chdir", b"fchdir", *FORKS))
#: lines of a process without parent that wait for one that shows its working directory
MAX_HELD = 64
#: calls by what they say, for the remark about those that a log lacks
FAMILIES = syscalls.load().families()
CPU = "the CPU of each event: it is 0"
USAGE = "what processes used (CPU time, memory, I/O)"


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of a log."""

    out: EventLines
    n_processes: int
    remarks: tuple[str, ...]

    @property
    def counts(self) -> Counter[str]:
        """How many events there are by tag."""
        return self.out.counts

    @property
    def n_bytes(self) -> int:
        """How many bytes were written."""
        return self.out.n_bytes


class Converter:
    """Turns lines into events. `on_fork` hears of each child's pid.

    `is_own`: strace was asked for all calls, so those that the log lacks were not made.
    `says_responses`: a remark counts the response files whose contents are not saved.
    `says_usage`: a remark says that of its own run strace does not record what processes used.
    `keeps_environments`: those of all programs that the log has, else of make and ninja alone.
    `limit` returns how large the trace may be by now.
    """

    def __init__(
        self,
        stream: BinaryIO,
        directory: bytes,
        *,
        resolver: Resolver | None = None,
        reading: Reading | None = None,
        on_fork: Callable[[int], None] | None = None,
        is_own: bool = False,
        says_responses: bool = True,
        says_usage: bool = True,
        keeps_environments: bool = True,
        limit: Callable[[], int] | None = None,
    ) -> None:
        self.out = EventLines(stream, directory, limit)
        self.reading = reading or Reading()
        self.tasks = Tasks(self.out.pid_bits)
        self.calls = Calls(self.out, resolver or Lexical(), keeps_environments=keeps_environments)
        self.n_processes = 0
        self.last_ns = 0
        self.first_pid = 0
        self._signals = {name.encode(): n for name, n in values.signals().items()}
        self._anonymous: Task | None = None
        self._directory = directory
        self._waiting: dict[int, list[Stamped]] = {}
        self._held: dict[int, list[Stamped]] = {}
        self._n_forking = 0
        self._on_fork, self._is_own = on_fork, is_own
        self._says_responses, self._says_usage = says_responses, says_usage
        self._orphans = 0
        self._ready: deque[Stamped] = deque()

    def feed(self, lines: Iterable[Stamped]) -> None:
        """Convert lines in their order."""
        for stamped in lines:
            self._ready.append(stamped)
            self._drain()

    def _drain(self) -> None:
        """Take the lines that are ready; a fork may make more so."""
        while self._ready:
            stamped = self._ready.popleft()
            if (task := self._task(stamped)) is not None:
                self._take(task, stamped)
            if self._waiting and not self._ready and not self._n_forking:
                self._release()

    def finish(self) -> Converted:
        """Write what is left. EtraceError when nothing was a call."""
        while self._waiting:
            self._release()
            self._drain()
        for pid in list(self._held):
            self._place(pid, b"")
        self._drain()
        for task in list(self.tasks.live.values()):
            if task.status is not None:
                self.out.put(task.upid, task.last_ns, "Exit", (task.status,))
        self.calls.put_environment(self.last_ns)
        self.out.flush()
        if not self.n_processes:
            raise self._refusal()
        return Converted(self.out, self.n_processes, tuple(self._remarks()))

    def _refusal(self) -> EtraceError:
        hint = "give the file that strace -f -ttt -y -o FILE wrote"
        if self.reading.bad:
            text = "no line of strace: expected PID TIME CALL(ARGUMENTS) = RESULT"
            return EtraceError(f"{self.reading.bad}: {text}", hint)
        return EtraceError("the log has no call that starts a program or opens a file", hint)

    # ---- whose line ----

    def _task(self, stamped: Stamped) -> Task | None:
        """Return the task of a line; None when the line has to wait, or says nothing."""
        line = stamped.line
        if not line.pid:
            return self._nameless(line)
        task = self.tasks.live.get(line.pid)
        if task is not None:
            return task
        if self._is_anonymous(line):
            return self._name(line.pid)
        if line.pid in self._held:
            self._hold(stamped)
        elif self._n_forking or line.pid in self._waiting:
            self._waiting.setdefault(line.pid, []).append(stamped)
        elif line.kind not in ENDS:
            if not self.n_processes:
                return self._root(line.pid, self._directory)
            self._held[line.pid] = []
            self._hold(stamped)
        return None

    def _hold(self, stamped: Stamped) -> None:
        """Keep a line of a process without parent until one shows its working directory."""
        line, held = stamped.line, self._held[stamped.line.pid]
        held.append(stamped)
        directory = shown_directory(line)
        if directory or line.kind in ENDS or line.name in MOVES or len(held) == MAX_HELD:
            self._place(line.pid, directory or b"")

    def _place(self, pid: int, directory: bytes) -> None:
        held = self._held.pop(pid)
        if any(each.line.kind in (Kind.CALL, Kind.BEGUN) for each in held):
            self._root(pid, directory)
            self._ready.extendleft(reversed(held))

    def _root(self, pid: int, directory: bytes) -> Task:
        self.n_processes += 1
        self.first_pid = self.first_pid or pid
        self._orphans += self.n_processes > 1
        return self.tasks.root(pid, directory)

    def _nameless(self, line: Line) -> Task | None:
        """Return the task of a line without pid: strace on a terminal names no single process."""
        if self._anonymous is not None and not self._anonymous.is_over:
            return self._anonymous
        if (sole := self.tasks.sole()) is not None:
            return sole
        if self.tasks.live or line.kind not in (Kind.CALL, Kind.BEGUN):
            return None
        directory = b"" if self.n_processes else self._directory
        self._anonymous = self._root(0, directory)
        return self._anonymous

    def _is_anonymous(self, line: Line) -> bool:
        """Whether a new pid is that of the process that had none before."""
        task = self._anonymous
        if task is None or task.is_over or line.pid in self.reading.announced:
            return False
        if task.begun is None:
            return True
        return line.kind is Kind.RESUMED and line.name == task.begun.name

    def _name(self, pid: int) -> Task:
        task = self._anonymous
        assert task is not None  # _is_anonymous
        self.tasks.rename(task, pid)
        self._anonymous = None
        return task

    # ---- what it says ----

    def _take(self, task: Task, stamped: Stamped) -> None:
        line = stamped.line
        time_ns = max(stamped.time_ns, task.last_ns)
        self.last_ns = max(self.last_ns, time_ns)
        if line.kind is Kind.BEGUN:
            self._begin(task, line, time_ns)
            return
        if line.kind is Kind.RESUMED:
            self._resume(task, line, time_ns, stamped.where)
        elif line.kind is Kind.CALL:
            self._drop_begun(task)
            self._call(task, line.name, line.arguments, line.result, time_ns, stamped.where)
        elif line.kind is Kind.SUPERSEDED:
            self._supersede(task, line.number, time_ns, stamped.where)
        else:
            self._end(task, line, time_ns)
        task.last_ns = max(task.last_ns, time_ns)

    def _begin(self, task: Task, line: Line, time_ns: int) -> None:
        self._drop_begun(task)
        line.time = time_ns
        task.begun = line
        self._n_forking += line.name in FORKS

    def _drop_begun(self, task: Task) -> None:
        """Forget a call that never ended."""
        if task.begun is not None and task.begun.name in FORKS:
            self._n_forking -= 1
        task.begun = None

    def _resume(self, task: Task, line: Line, time_ns: int, where: str) -> None:
        begun, task.begun = task.begun, None
        if begun is None or begun.name != line.name:
            task.begun = begun
            self._drop_begun(task)
            return  # the beginning is not in the log
        text = begun.arguments + line.arguments
        begin_ns = time_ns if begun.time is None else begun.time
        time_ns = begin_ns if line.name in EARLY else time_ns
        self._call(task, line.name, text, line.result, time_ns, where)
        if line.name in FORKS:
            task.begun = begun
            self._drop_begun(task)

    def _call(
        self, task: Task, name: bytes, text: bytes, result: Result | None, time_ns: int, where: str
    ) -> None:
        assert result is not None  # of Kind.CALL and Kind.RESUMED
        if result.value is not None and result.value > MAX_INT:
            self.reading.spoil(where)
            return
        try:
            if name in NAMESPACES:
                task.sends_inside |= result.value == 0 and b"CLONE_NEWPID" in text
            elif name in FORKS:
                self._fork(task, name, text, result, time_ns)
            else:
                self.calls.handle(task, time_ns, name, text, result)
        except BadCallError:
            self.reading.spoil(where)

    def _fork(self, task: Task, name: bytes, text: bytes, result: Result, time_ns: int) -> None:
        self.calls.seen.add(name)
        if result.value is None:
            return  # it is made again
        flags = _clone_flags(name, text)
        if flags is not None:
            self.out.put(task.upid, time_ns, "SysClone", (flags,))
            if result.value <= 0:
                self.out.put(task.upid, time_ns, "SysCloneFailed")
        if result.value <= 0 or result.value > MAX_INT:
            return
        if task.is_inside and not result.is_outer:
            return  # the number is another one outside; the child is one of the orphans
        child = self.tasks.fork(task, result.value, flags or 0)
        child.last_ns = time_ns
        self.n_processes += not (flags or 0) & CLONE_THREAD
        self.out.put(task.upid, time_ns, "SchedFork", (child.upid,))
        if self._on_fork is not None:
            self._on_fork(child.pid)
        for waiting in (self._held, self._waiting):
            self._ready.extend(waiting.pop(child.pid, ()))

    def _release(self) -> None:
        """Take the lines of processes whose parent is not known."""
        waiting, self._waiting = self._waiting, {}
        for pid, lines in waiting.items():
            self._held[pid] = []
            self._ready.extend(lines)

    def _supersede(self, leader: Task, pid: int, time_ns: int, where: str) -> None:
        thread = self.tasks.live.get(pid)
        if thread is None or thread is leader:
            return
        self._drop_begun(leader)
        self.out.put(leader.upid, time_ns, "Exit", (0,))
        self.tasks.end(leader)
        self.tasks.rename(thread, leader.pid)
        begun, thread.begun = thread.begun, None
        if begun is not None:
            # it succeeded; with --seccomp-bpf some versions show a wrong result of it
            self._call(thread, begun.name, begun.arguments, Result(0), time_ns, where)

    def _end(self, task: Task, line: Line, time_ns: int) -> None:
        status = line.number & 0xFF
        if line.kind is Kind.KILLED:
            status = self.out.signal_base + self._signal(line.name)
        self.out.put(task.upid, time_ns, "Exit", (status,))
        self.tasks.end(task)
        self._drop_begun(task)

    def _signal(self, name: bytes) -> int:
        """Return the number of a signal; those of real time are SIGRT_N, SIGRTMIN+N."""
        known = self._signals.get(name)
        if known is not None:
            return known
        digits = bytes(c for c in name if 48 <= c <= 57)
        return 32 + int(digits[:9]) % 33 if digits else 0

    # ---- what is not in it ----

    def _remarks(self) -> Iterator[str]:
        if not self._is_own:
            yield f"the log does not say: {'; '.join([CPU, USAGE, *sorted(self.reading.lacks)])}"
            missing = [family for family, calls in FAMILIES.items() if not self._has(calls)]
            if missing:
                yield (
                    f"the log has no calls for: {', '.join(missing)}: if there were any, strace "
                    "was not asked for them"
                )
        elif self._says_usage:
            yield f"strace does not record {USAGE}; --no-usage: do not say so"
        for lack, n in self.calls.lacks.items():
            yield agree(n, lack)
        if n := self._n_responses():
            text = "response file{s} {was|were} not saved (@FILE of compilers): strace cannot"
            yield agree(n, text)
        if self._orphans:
            text = (
                "process{es} {has|have} no parent in the log (recorded without -f, or in a PID "
                "namespace without --pidns-translation?)"
            )
            yield agree(self._orphans, text)
        if self.reading.n_bad:
            text = "line{s} {was|were} not understood and left out"
            yield f"{agree(self.reading.n_bad, text)}; the first is {self.reading.bad}"

    def _n_responses(self) -> int:
        given = self.calls.responses
        if not given or not self._says_responses:
            return 0
        try:
            names = load()
        except SpecError:  # of a user's own file: `cas pp` says so, the trace does not need it
            return 0
        known = {
            argv0 for argv0 in given if (tool := names.find_name(argv0)) and tool.kind != RUNNER
        }
        return sum(n for argv0, n in given.items() if argv0 in known)

    def _has(self, calls: tuple[bytes, ...]) -> bool:
        return any(call in self.calls.seen for call in calls)


def _clone_flags(name: bytes, text: bytes) -> int | None:
    """Return the flags of a clone, the exit signal in the low byte; None for fork and vfork."""
    if name in (b"fork", b"vfork"):
        return None
    fields = values.fields(text.split(b" => ", 1)[0].removesuffix(b", 88"))
    if name == b"clone3":
        head = text[: text.find(b"}") + 1]
        fields = values.fields(head)
    flags = values.number(fields.get(b"flags", b"0")) or 0
    return (flags | ((values.number(fields.get(b"exit_signal", b"0")) or 0) & 0xFF)) & U64
