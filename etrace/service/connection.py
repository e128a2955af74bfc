# SPDX-License-Identifier: Apache-2.0
"""One connection, served by a process of its own: a probe, or a session from request to stats.

The session ends with the connection, whoever closes it. Alarms end this process where the caller
could make it wait (their file on a file system that they serve): the next session cleans up.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import select
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from etrace.capture import signals
from etrace.capture.backend import Progress
from etrace.capture.kmod.beginning import Plan, begin
from etrace.capture.kmod.host import Host
from etrace.capture.kmod.session import Session
from etrace.capture.kmod.stage import already
from etrace.capture.kmod.system import process
from etrace.capture.kmod.system.control import Option
from etrace.capture.kmod.system.output import handed
from etrace.capture.remote import protocol
from etrace.errors import CaptureError, EtraceError
from etrace.service.caller import Caller, Target, check_process, check_trace, file_size_limit

#: how long a caller may take to say what they want, and may make a step of the service last
REQUEST_S, BEGIN_S, END_S = 10, 120, 1800
TEND_MS = 500  #: how often the collector is looked after
MISSING = "the kernel module is not loaded"
MISSING_HINT = "sudo modprobe etrace; `etrace doctor` says what it needs"


def serve(sock: socket.socket, caller: Caller, host: Host) -> None:
    """Serve a connection to its end."""
    _limit(REQUEST_S)
    sock.settimeout(REQUEST_S)
    fds: list[int] = []
    try:
        raw, fds = protocol.receive(sock, protocol.MAX_REQUEST_BYTES, protocol.N_DESCRIPTORS)
        if raw is not None:
            _obey(sock, caller, host, raw, fds)
    except EtraceError as error:
        _answer(sock, {"error": error.message, "hint": error.hint})
    except OSError as error:
        _answer(sock, {"error": f"etraced: {error.strerror or error}"})
    finally:
        protocol.close_all(fds)


def _obey(
    sock: socket.socket, caller: Caller, host: Host, raw: dict[str, Any], fds: list[int]
) -> None:
    verb, options = protocol.read_request(raw)
    if verb == protocol.PROBE and not fds:
        refuse_when_impossible(host)
        _answer(sock, {"works": True})
    elif verb == protocol.TRACE and fds:
        trace, pidfd = fds
        refuse_when_impossible(host)
        check_trace(trace, caller)
        target = check_process(pidfd, caller)
        _Capture(sock, host, caller).run(trace, target, options)
    else:
        raise protocol.ProtocolError("a request out of order")


def refuse_when_impossible(host: Host) -> None:
    """Raise CaptureError with the reason why no session can begin now."""
    if not host.modules.is_loaded():
        raise CaptureError(MISSING, MISSING_HINT)
    if message := already(host):
        raise CaptureError(message, "wait for its end, or trace without the module")


@dataclass(slots=True)
class _Capture:
    """A session and the connection that it belongs to."""

    sock: socket.socket
    host: Host
    caller: Caller
    remarks: list[str] = field(default_factory=list)
    cut: bool = True  #: unless the caller asks for the end

    def run(self, trace: int, target: Target, options: Option) -> None:
        """Begin, answer the caller until they want the end or are gone, end."""
        output = handed(trace, self.caller.owner)
        plan = Plan(
            directory=output.directory,
            owner=self.caller.owner,
            root_process=process.identify(target.pid),
            options=options | Option.UNPRIVILEGED,
            driver=process.identify(os.getpid()),
            output=output,
            check_root=target.check,
            prepare=lambda reader: limit_file_size(reader, self.caller),
        )
        with _stopped_by_signal() as stopped:
            _limit(BEGIN_S)
            begun = begin(self.host, plan, self.remarks.append)
            _limit(0)
            _answer(self.sock, {"session": begun.state.session, "remarks": self.remarks})
            self.remarks.clear()
            with contextlib.suppress(OSError, EtraceError):
                self.follow(stopped, begun)
            _limit(END_S)
            self.end(begun)

    def follow(self, stopped: int, begun: Session) -> None:
        """Answer questions; return when the caller wants the end or `stopped` is readable."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        poll.register(stopped, select.POLLIN)
        with begun.watched():
            while stopped not in (ready := [fd for fd, _ in poll.poll(TEND_MS)]):
                _limit(BEGIN_S)
                begun.tend()
                _limit(0)
                if not ready:
                    continue
                raw, _ = protocol.receive(self.sock, protocol.MAX_REQUEST_BYTES)
                verb = None if raw is None else protocol.read_request(raw)[0]
                if verb != protocol.PROGRESS:
                    self.cut = verb != protocol.STOP
                    return
                counts = begun.progress() or Progress(live=begun.live())
                _answer(self.sock, {"counts": list(dataclasses.astuple(counts))})

    def end(self, begun: Session) -> None:
        """End the session and send its result."""
        ending = begun.end({})
        self.sock.settimeout(REQUEST_S)
        final = {
            "stats": ending.stats,
            "losses": [dataclasses.asdict(loss) for loss in ending.losses],
            "warnings": list(ending.warnings),
            "hint": ending.hint,
            "remarks": self.remarks,
            "cut": self.cut,
        }
        _answer(self.sock, final)


def limit_file_size(reader: process.Process, caller: Caller) -> None:
    """Give a collector the caller's limit of the size of files."""
    limit = file_size_limit(caller)
    with contextlib.suppress(OSError):  # it has ended
        resource.prlimit(reader.pid, resource.RLIMIT_FSIZE, (limit, limit))


@contextlib.contextmanager
def _stopped_by_signal() -> Iterator[int]:
    """Inside the block, a signal that ends the service makes the yielded descriptor readable."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = {number: signal.getsignal(number) for number in signals.ENDING}

    def note(_number: int, _frame: object) -> None:
        os.write(writer, b"\n")

    try:
        for number in signals.ENDING:
            signal.signal(number, note)
        yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _limit(seconds: int) -> None:
    """Let SIGALRM end this process, wherever it waits; 0: no more."""
    signal.alarm(seconds)


def _answer(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send a message; a caller who is gone or does not read gets none."""
    with contextlib.suppress(OSError):
        protocol.send(sock, message)
