# SPDX-License-Identifier: Apache-2.0
"""One traced command whose session etraced runs: this process opens and names all files itself."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etrace.capture.backend import Options, Outcome, Progress
from etrace.capture.files import STATS, TRACE
from etrace.capture.kmod.command import Command
from etrace.capture.kmod.ending import STOPPED, Ending, Loss, publish
from etrace.capture.kmod.run import Run
from etrace.capture.kmod.system.control import words_of
from etrace.capture.kmod.system.output import PARTIAL, Output, identity_of, open_output
from etrace.capture.kmod.system.owner import myself
from etrace.capture.remote import protocol, service
from etrace.errors import CaptureError

#: loading probes and making buffers; a large trace is read to its end
BEGIN_S, END_S = 90.0, 3600.0
DIED = "the service etraced ended during the session: the trace ends there"
CUT = "the service etraced was stopped during the session: nothing was recorded after that"


def trace(
    command: list[str], options: Options, on_progress: Callable[[Progress], None] | None
) -> Outcome:
    """Trace `command` until it ends; see kmod.run.trace. CaptureError when etraced refuses."""
    remarks: list[str] = []
    output = open_output(Path(options.trace).parent, myself())
    output.check((TRACE, STATS))
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(contextlib.closing(Command(command, still=True)))
        stack.callback(held.forsake)
        sock = stack.enter_context(service.connect())
        if output.left_over():
            remarks.append(f"an unfinished trace is in {output.directory}; it is kept as {PARTIAL}")
        fd = output.create()
        stack.callback(os.close, fd)
        with _discarded_on_error(output):
            os.write(fd, b"INITCWD=" + os.fsencode(Path.cwd()) + b"\n")
            remote = _Remote(sock, output, identity_of(fd), remarks.append)
            remote.begin(options, fd, held.fileno())
        return Run(remote, options, held, on_progress, remarks).run()


@contextlib.contextmanager
def _discarded_on_error(output: Output) -> Iterator[None]:
    try:
        yield
    except BaseException:
        output.discard()
        raise


@dataclass(slots=True)
class _Remote:
    """A session at etraced, as run.py sees it (Traced)."""

    sock: socket.socket
    output: Output
    identity: tuple[int, int]
    say: Callable[[str], None]
    final: dict[str, Any] | None = None
    gone: bool = False
    counts: list[int] = field(default_factory=list)

    def begin(self, options: Options, fd: int, pidfd: int) -> None:
        """Hand over the trace and the process; return when events are recorded."""
        self.sock.settimeout(BEGIN_S)
        request = protocol.request(protocol.TRACE, words_of(options))
        self.say_all(service.ask(self.sock, request, (fd, pidfd)))
        self.sock.settimeout(service.ANSWER_S)

    def watched(self) -> contextlib.AbstractContextManager[object]:
        """See Traced.watched."""
        return contextlib.nullcontext()

    def live(self) -> int:
        """See Traced.live."""
        self._ask()
        return self.counts[1] if self.counts else 0

    def progress(self) -> Progress | None:
        """See Traced.progress."""
        self._ask()
        return Progress(*self.counts) if self.counts else None

    def tend(self) -> None:
        """See Traced.tend: etraced does it."""

    def is_running(self) -> bool:
        """See Traced.is_running."""
        return self.final is None and not self.gone

    def say_all(self, message: dict[str, Any]) -> None:
        """Hand on the remarks of etraced."""
        for remark in message.get("remarks", []):
            self.say(str(remark))

    def end(self, more: dict[str, Any]) -> Ending:
        """See Traced.end."""
        if self.is_running():
            self.sock.settimeout(END_S)
            self._exchange(protocol.STOP)
        while self.is_running():  # what comes first may answer an older question
            self._take()
        final = self.final or {"stats": {}, "losses": [], "warnings": []}
        losses = tuple(Loss(**loss) for loss in final["losses"])
        if self.gone:
            losses = (*losses, Loss(1, DIED, at_least=True))
        elif final.get("cut"):
            losses = (*losses, Loss(1, CUT, at_least=True))
        self.say_all(final)
        return self._publish(final, losses, more)

    def _publish(
        self, final: dict[str, Any], losses: tuple[Loss, ...], more: dict[str, Any]
    ) -> Ending:
        ended = final["stats"].get("ended", "service-died")
        stats = {**final["stats"], **more, "ended": more.get("ended", ended)}
        if ended != STOPPED:
            stats["ended"] = ended
        stats["lost"] = sum(loss.n for loss in losses)
        stats["losses"] = [dataclasses.asdict(loss) for loss in losses]
        result = Ending(
            trace=self.output.directory / TRACE,
            aside=False,
            stats=stats,
            losses=losses,
            warnings=tuple(str(warning) for warning in final["warnings"]),
            hint=str(final.get("hint", "")),
        )
        nothing = not losses and not stats.get("executions", 1)
        return publish(self.output, self.identity, result, nothing=nothing)

    def _ask(self) -> None:
        """Bring the counts up to date; keep the last ones when etraced does not answer."""
        if self.is_running():
            self._exchange(protocol.PROGRESS)

    def _exchange(self, verb: str) -> None:
        with contextlib.suppress(OSError):  # it has ended; its last message may be there
            protocol.send(self.sock, protocol.request(verb))
        self._take()

    def _take(self) -> None:
        """Take one message."""
        try:
            reply, _ = protocol.receive(self.sock, protocol.MAX_REPLY_BYTES)
        except (OSError, CaptureError):
            reply = None
        if reply is None or "error" in reply:
            self.gone = True
        elif "stats" in reply:
            self.final = reply
        elif len(counts := reply.get("counts", [])) == len(Progress.__slots__):
            self.counts = [int(count) for count in counts]
