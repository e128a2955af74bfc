# SPDX-License-Identifier: Apache-2.0
"""Gives the session of an `etrace run` another collector when a signal kills its collector.

The process that drives the session holds what owns it, too, so the kernel continues to record, and
the buffers keep what nobody reads. Another collector continues the trace behind the last event that
is whole. What the killed one had read but not written is lost, and counted. A collector that ended
by itself (a full disk, SIGTERM) gets no successor: then the session ends.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass

from etrace.capture.kmod.sessions.host import Host
from etrace.capture.kmod.sessions.rescue import resumed, until_now
from etrace.capture.kmod.sessions.state import State
from etrace.capture.kmod.sessions.teardown import Tell, never
from etrace.capture.kmod.system.process import Process
from etrace.errors import CaptureError, EtraceError

#: something that kills a collector again and again kills the last one, too
MAX_SUCCESSORS = 5
PATIENCE_S = 60.0


@dataclass(slots=True)
class Keeper:
    """Holds a session that this process began; `prepare` gets each successor before it reads."""

    host: Host
    tell: Tell
    prepare: Callable[[Process], None] = lambda _process: None
    n_successors: int = 0
    owner: int = -1  #: the descriptor that owns the session

    def hold(self, owner: int) -> None:
        """Take the descriptor; see session.Plan."""
        self.owner = owner

    def close(self) -> None:
        """Let go: the session ends with its collector."""
        if self.owner >= 0:
            os.close(self.owner)
            self.owner = -1

    def tend(self, state: State) -> State:
        """Return the session, whose collector is another one if it was killed meanwhile."""
        status = _status_of(state.collector.pid) if self.owner >= 0 else None
        if status is None:
            return state
        if os.WIFSIGNALED(status) and self.n_successors < MAX_SUCCESSORS:
            self.n_successors += 1
            try:
                return self._succeed(state, os.WTERMSIG(status))
            except EtraceError as error:
                self.tell(f"the collector was killed, and no other one runs: {error.message}")
        self.close()
        return state

    def _succeed(self, state: State, number: int) -> State:
        host = self.host
        with host.states.locked(PATIENCE_S):
            now = host.states.read()
            if now is None or now.collector != state.collector or now.stopping:
                raise CaptureError("another process is ending the session")
            before = {key: n for key, n in until_now(host, state).items() if type(n) is int}
            with resumed(host, state, state.instance, self.owner) as held:
                # the state on disk does not know the descriptor of a trace
                state = dataclasses.replace(state, collector=held.process, before=before)
                host.states.write(state)
                self.prepare(held.process)
                held.release(host.states.collector_log, never)
        self.tell(
            f"the collector was killed (signal {number}); another one continues the trace, "
            "without the records that it had read but not written"
        )
        return state


def _status_of(pid: int) -> int | None:
    """Return how a child ended; None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return status if ended else None
