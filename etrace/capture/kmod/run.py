# SPDX-License-Identifier: Apache-2.0
"""One traced command: a session whose root is its process, from before the exec to the end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture import signals
from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.kmod import collector, process, session, survivors, teardown
from etrace.capture.kmod.command import Command, Ended
from etrace.capture.kmod.control import Control, Counter, Option
from etrace.capture.kmod.ending import Ending
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.owner import myself
from etrace.capture.kmod.state import State
from etrace.capture.session import told_aside
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


def plan(options: Options, root: Command) -> session.Plan:
    """Return the session that these capture options ask for."""
    wanted = {
        Option.ENVIRONMENT: options.env,
        Option.MOUNTS: options.mounts,
        Option.THREAD_NAMES: options.thread_names,
    }
    flags = Option.NONE
    for flag, on in wanted.items():
        flags |= flag if on else Option.NONE
    return session.Plan(
        directory=Path(options.trace).parent,
        owner=options.owner or myself(),
        root_process=process.identify(root.pid),
        root_name=root.name,
        options=flags,
        driver=process.identify(os.getpid()),
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
            state = session.begin(host, plan(options, held), remarks.append)
            return _Run(host, options, held, state, on_progress, remarks).run()
        finally:
            held.forsake()


@dataclass(slots=True)
class _Run:
    """A command with its session."""

    host: Host
    options: Options
    command: Command
    state: State
    on_progress: Callable[[Progress], None] | None
    remarks: list[str]
    ended: Ended | None = None
    hurried: bool = field(default=False)
    handed_on: bool = field(default=False)

    def run(self) -> Outcome:
        """Let the command run, end the session, and return how the command ended."""
        with signals.forwarded(self.hand_on):
            try:
                ended, n_alive, duration_ns = self.follow()
            except BaseException:
                with contextlib.suppress(CaptureError):
                    teardown.end_own(self.host, self.state, self.remarks.append, {})
                raise
            more = {
                "ended": self.named(ended),
                "exit_status": 0 if ended.signal else ended.status,
                "signal": ended.signal,
                "duration_ns": duration_ns,
            }
            try:
                ending = teardown.end_own(self.host, self.state, self.remarks.append, more)
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
        with contextlib.closing(self.host.connect()) as control:
            self.command.release()
            self.ended = self.command.wait(TICK_S, lambda: self.show(control))
            duration_ns = time.monotonic_ns() - began
            return self.ended, self.wait_for_survivors(control), duration_ns

    def hand_on(self, number: int) -> None:
        """Forward a signal to the command; after its end, stop waiting."""
        if self.ended is None:
            self.handed_on = True
            self.command.send(number)
        else:
            self.hurried = True

    def show(self, control: Control) -> None:
        """Report progress; a failing status line does not stop the build."""
        if self.on_progress is None:
            return
        with contextlib.suppress(Exception):
            live = live_tasks(control)
            if (counts := collector.progress(self.host.states.progress, live)) is not None:
                self.on_progress(counts)

    def wait_for_survivors(self, control: Control) -> int:
        """Wait until no traced task is left, but not too long; return how many remain."""
        give_up = time.monotonic() + SURVIVAL_S
        while n_alive := live_tasks(control):
            late = time.monotonic() > give_up and not self.options.wait_all
            if late or self.hurried or not session.is_running(self.state):
                break
            time.sleep(SURVIVAL_TICK_S)
        return n_alive

    def outcome(self, ending: Ending, ended: Ended, n_alive: int) -> Outcome:
        """Return the command's status with all messages."""
        if ending.aside and self.options.summary:
            self.remarks.append(told_aside(ending.trace.name))
        if n_alive and (names := survivors.names(ending.trace)):
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


def live_tasks(control: Control) -> int:
    """Return how many traced tasks there are now; 0 when the module does not say."""
    try:
        return control.status().count(Counter.LIVE)
    except CaptureError:
        return 0
