# SPDX-License-Identifier: Apache-2.0
"""A session of the kernel module: one state machine, from START until the machine is restored.

          begin              number noted               end
    NONE ───────► STARTING ───────────────► RUNNING ─────────► ENDING ─────────► ENDED
     ▲  ◄─────────── │                       │    ▲               it wrote all      │
     │   a failure   │ the collector dies    │    │ its driver tends it             │
     │   or signal   ▼                       ▼    │                                 │
     │               └───────────────────► BROKEN ┘                                 │
     │                 end, or the next begin │                                     │
     └────────────────────────────────────────┴─────────────────────────────────────┘
       taken apart: stop, drain, count, publish the trace, restore the machine

    stage     session.json         asked to end  collector
    NONE      missing
    STARTING  no number yet        no            alive
    RUNNING   the kernel's number  no            alive
    BROKEN    present              no            dead
    ENDING    present              yes           alive
    ENDED     present              yes           dead

Any process may die in any stage: the stage is read from session.json and the collector's process,
never remembered, so the next command goes on from there. While the collector lives, `begin` is
refused; BROKEN and ENDED are taken apart first, unless their driver lives. Only the wait for the
collector in ENDING can be interrupted; the next `end` waits again.

stage.py reads the stage, beginning.py goes from NONE to RUNNING and teardown.py from any stage to
NONE; the `Session` in this file is for a driver.

Who holds what:
- the lock in /run/etrace: whoever begins, ends or repairs a session, for that time;
- the socket that owns the kernel's session: the collector, and the driver (`etrace run`, etraced)
  if there is one; when the last of them closes it, the kernel ends the session;
- the trace: the collector, by a descriptor; the name `.nfsdb` comes when it is whole;
- the ftrace instance and the module: nobody; session.json lists them for whoever takes it apart.

A driver's collector that a signal killed gets a successor: the kernel records on, the buffers keep
what nobody reads, and the trace goes on after its last whole event. What the killed one had read
but not written (it sorts events) is lost, and counted. A collector that ended by itself (a full
disk, SIGTERM) gets none. Without a driver, `end` reads what the buffers still hold.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from etrace.capture import signals
from etrace.capture.backend import Progress
from etrace.capture.kmod import collector
from etrace.capture.kmod.ending import Ending
from etrace.capture.kmod.host import Host, Say, counts_until_now, never, resume_collector
from etrace.capture.kmod.state import State
from etrace.capture.kmod.system.control import Control, Counter
from etrace.capture.kmod.system.process import Process
from etrace.capture.kmod.teardown import take_apart
from etrace.errors import CaptureError, EtraceError

#: for a command that looks at a session just when another one ends its own
END_PATIENCE_S, MEND_PATIENCE_S = 600.0, 60.0
#: something that kills a collector again and again kills the last one, too
MAX_SUCCESSORS = 5


@dataclass(slots=True)
class Session:
    """A session that this process began: it is run.Traced.

    `owner` is this process's descriptor of what owns the session, -1 for none.
    """

    host: Host
    state: State
    say: Say
    owner: int = -1
    prepare: Callable[[Process], None] | None = None
    n_successors: int = 0
    control: Control | None = None

    def close(self) -> None:
        """Let go: the session ends with its collector."""
        if self.owner >= 0:
            os.close(self.owner)
            self.owner = -1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """See Traced.watched."""
        with contextlib.closing(self.host.connect()) as control:
            self.control = control
            yield
        self.control = None

    def live(self) -> int:
        """See Traced.live."""
        with contextlib.suppress(CaptureError):
            return self.control.status().count(Counter.LIVE) if self.control else 0
        return 0

    def progress(self) -> Progress | None:
        """See Traced.progress."""
        return collector.progress(self.host.states.progress, self.live())

    def is_running(self) -> bool:
        """See Traced.is_running."""
        return self.state.collector.is_alive()

    def tend(self) -> None:
        """Give the session another collector if a signal has killed it."""
        status = _status_of(self.state.collector.pid) if self.owner >= 0 else None
        if status is None:
            return
        if os.WIFSIGNALED(status) and self.n_successors < MAX_SUCCESSORS:
            self.n_successors += 1
            try:
                self._repair(os.WTERMSIG(status))
            except EtraceError as error:
                self.say(f"the collector was killed, and no other one runs: {error.message}")
            else:
                return
        self.close()

    def _repair(self, number: int) -> None:
        host, state = self.host, self.state
        with host.states.locked(MEND_PATIENCE_S):
            now = host.states.read()
            if now is None or now.collector != state.collector or now.stopping:
                raise CaptureError("another process is ending the session")
            before = {key: n for key, n in counts_until_now(host, state).items() if type(n) is int}
            with resume_collector(host, state, state.instance, self.owner) as held:
                # the state on disk does not know the descriptor of a trace
                self.state = dataclasses.replace(state, collector=held.process, before=before)
                host.states.write(self.state)
                if self.prepare is not None:
                    self.prepare(held.process)
                held.release(host.states.collector_log, never)
        self.say(
            f"the collector was killed (signal {number}); another one continues the trace, "
            "without the records that it had read but not written"
        )

    def end(self, more: dict[str, Any]) -> Ending:
        """End it; `more` goes into its stats."""
        with signals.deferred(), self.host.states.locked(END_PATIENCE_S):
            now = self.host.states.read()
            if now is None or now.collector != self.state.collector:
                raise CaptureError(
                    "another process has ended the session",
                    f"its trace is in {self.state.output.directory}",
                )
            # a descriptor of the trace is known here only, not to the file of the state
            state = dataclasses.replace(now, output=self.state.output)
            return take_apart(self.host, state, self.say, never, more)


def _status_of(pid: int) -> int | None:
    """Return how a child ended; None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return status if ended else None
