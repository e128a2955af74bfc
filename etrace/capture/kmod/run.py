# SPDX-License-Identifier: Apache-2.0
"""One traced command: a session whose root is its process, from before the exec to the end.

Either this process runs the session (session.Session) or etraced does (remote.client); both are
`Traced`.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from etrace.capture import signals
from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.files import aside_message
from etrace.capture.kmod.beginning import Plan, begin
from etrace.capture.kmod.command import Command, Ended
from etrace.capture.kmod.ending import Ending
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import options_of, words_of
from etrace.capture.kmod.system.owner import myself
from etrace.errors import CaptureError
from etrace.figures import agree

TICK_S = 0.45
#: how long processes that outlive the command are recorded (docs/capture-ptrace.md: the same rule)
SURVIVAL_S = 1.0
SURVIVAL_TICK_S = 0.05
TRACE_INCOMPLETE = 125
N_NAMED = 5
SURVIVORS = "process{es} outlive{s|} the command and continue{s|} unrecorded"
LOST = "event{s} {is|are} lost"


class Traced(Protocol):
    """The session of a command that is still held."""

    def watched(self) -> contextlib.AbstractContextManager[object]:
        """Have live() and progress() inside the block; CaptureError when that is not possible."""

    def live(self) -> int:
        """Return how many traced tasks there are now; 0 when that is not known."""

    def progress(self) -> Progress | None:
        """Return the counts so far; None while there are none."""

    def tend(self) -> None:
        """Look after it; to be called now and then."""

    def is_running(self) -> bool:
        """Whether events are still recorded."""

    def end(self, more: dict[str, Any]) -> Ending:
        """End it and write its files; `more` goes into the stats. CaptureError."""


def plan(options: Options, root: Command) -> Plan:
    """Return the session that these capture options ask for."""
    return Plan(
        directory=Path(options.trace).parent,
        owner=options.owner or myself(),
        root_process=process.identify(root.pid),
        root_name=root.name,
        options=options_of(words_of(options)),
        driver=process.identify(os.getpid()),
        buffer_kib=options.buffer_kib,
    )


def trace(
    host: Host,
    command: list[str],
    options: Options,
    on_progress: Callable[[Progress], None] | None,
) -> Outcome:
    """Trace `command` until it ends, and processes that outlive it for another second."""
    remarks: list[str] = []
    with contextlib.closing(Command(command)) as held:
        try:
            begun = begin(host, plan(options, held), remarks.append)
            with contextlib.closing(begun):
                return Run(begun, options, held, on_progress, remarks).run()
        finally:
            held.forsake()


@dataclass(slots=True)
class Run:
    """A command with its session."""

    traced: Traced
    options: Options
    command: Command
    on_progress: Callable[[Progress], None] | None
    remarks: list[str]
    ended: Ended | None = None
    hurried: bool = False
    handed_on: bool = False

    def run(self) -> Outcome:
        """Let the command run, end the session, and return how the command ended."""
        with signals.forwarded(self.hand_on):
            try:
                ended, n_alive, duration_ns = self.follow()
            except BaseException:
                with contextlib.suppress(CaptureError):
                    self.traced.end({})
                raise
            more = {
                "ended": self.named(ended),
                "exit_status": 0 if ended.signal else ended.status,
                "signal": ended.signal,
                "duration_ns": duration_ns,
            }
            try:
                ending = self.traced.end(more)
            except CaptureError as error:
                self.remarks += [error.message, error.hint]
                status = ended.status or TRACE_INCOMPLETE
                return Outcome(status, ended.signal, {}, tuple(self.remarks))
        return self.outcome(ending, ended, n_alive)

    def named(self, ended: Ended) -> str:
        """Return how the command ended; one that a signal ended on purpose was interrupted."""
        asked = self.handed_on and ended.status != 0
        if asked or ended.signal in signals.ENDING:
            return "interrupted"
        return "signal" if ended.signal else "exit"

    def follow(self) -> tuple[Ended, int, int]:
        """Let the command run; return how it ended, how many tasks outlive it, and its time."""
        began = time.monotonic_ns()
        with self.traced.watched():
            self.command.release()
            self.ended = self.command.wait(TICK_S, self.show)
            duration_ns = time.monotonic_ns() - began
            return self.ended, self.wait_for_survivors(), duration_ns

    def hand_on(self, number: int) -> None:
        """Forward a signal to the command; after its end, stop waiting."""
        if self.ended is None:
            self.handed_on = True
            self.command.send(number)
        else:
            self.hurried = True

    def show(self) -> None:
        """Look after the session and report progress; a failing one does not stop the build."""
        self.traced.tend()
        if self.on_progress is None:
            return
        with contextlib.suppress(Exception):
            if (counts := self.traced.progress()) is not None:
                self.on_progress(counts)

    def wait_for_survivors(self) -> int:
        """Wait until no traced task is left, but not too long; return how many remain."""
        give_up = time.monotonic() + SURVIVAL_S
        while n_alive := self.traced.live():
            self.traced.tend()
            late = time.monotonic() > give_up and not self.options.wait_all
            if late or self.hurried or not self.traced.is_running():
                break
            time.sleep(SURVIVAL_TICK_S)
        return n_alive

    def outcome(self, ending: Ending, ended: Ended, n_alive: int) -> Outcome:
        """Return the command's status with all messages."""
        if ending.aside and self.options.summary:
            self.remarks.append(aside_message(ending.trace.name))
        if n_alive and (names := survivors(ending.trace)):
            shown = ", ".join(names[:N_NAMED]) + (", ..." if len(names) > N_NAMED else "")
            self.remarks.append(
                f"{agree(len(names), SURVIVORS)}: {shown}; --wait-all waits for them"
            )
        for loss in ending.losses:
            least = "at least " if loss.at_least else ""
            self.remarks.append(f"{least}{agree(loss.n, LOST)}: {loss.reason}")
        self.remarks += ending.warnings
        status = TRACE_INCOMPLETE if ending.lost and not ended.status else ended.status
        return Outcome(status, ended.signal, ending.stats, tuple(self.remarks))


# ---- who outlives the command

PID_MASK = (1 << 22) - 1
LIFE = re.compile(rb"^(\d+),\d+,\d+,\d+!(?:SchedFork\|pid=(\d+)|Exit\|)", re.MULTILINE)
PIECE_BYTES = 1 << 20


def _pieces(trace: Path) -> Iterator[bytes]:
    """Yield a trace in pieces of whole lines; nothing if it is not a regular file."""
    fd = os.open(trace, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as stream:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        rest = b""
        while piece := stream.read(PIECE_BYTES):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            yield whole + newline


def alive_upids(trace: Path) -> set[int]:
    """Return the upids of tasks whose SchedFork is in the trace and whose Exit is not.

    Only the trace knows every process exactly: an orphan has no parent to be found by, and a number
    may have been given to somebody else since (a upid never is).
    """
    alive: set[int] = set()
    ended: set[int] = set()
    for piece in _pieces(trace):
        for found in LIFE.finditer(piece):
            if child := found[2]:
                alive.add(int(child))
            else:
                ended.add(int(found[1]))
    return alive - ended


def survivors(trace: Path) -> list[str]:
    """Return `name (pid)` of each process of the trace that still runs; threads are not named."""
    pids = sorted(upid & PID_MASK for upid in alive_upids(trace))
    return [f"'{process.name(pid)}' ({pid})" for pid in pids if process.is_leader(pid)]
