# SPDX-License-Identifier: Apache-2.0
"""Accepts connections, gives each a process, bounds how many there are, and ends when idle."""

from __future__ import annotations

import contextlib
import grp
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etrace.capture.kmod.host import Host
from etrace.capture.kmod.teardown import tidy
from etrace.capture.remote import protocol
from etrace.errors import CaptureError, EtraceError
from etrace.service.caller import Caller, caller_of
from etrace.service.connection import serve

#: connections at once; one runs the session, the others ask whether one could
MAX_CONNECTIONS, MAX_PER_USER = 32, 4
PAUSE_S = 0.05
#: for a caller that no process of its own serves; closing what it sent may wait for its peer
REFUSE_S = 0.1
#: of the socket
FIRST_FD = 3
MODE = 0o660
BACKLOG = 32
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
Say = Callable[[str], None]


@dataclass(slots=True)
class Daemon:
    """The service; `idle_s` without a connection end it."""

    listener: socket.socket
    host: Host
    say: Say
    idle_s: float
    workers: dict[int, int] = field(default_factory=dict)  #: pid -> uid of the caller
    ending: bool = False

    def run(self) -> None:
        """Serve until a signal comes or nobody does."""
        tidy(self.host, self.say)
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, self._note)
        signal.signal(signal.SIGALRM, lambda *_: None)  # ends a wait
        self.listener.setblocking(False)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        poll.register(self.listener, select.POLLIN)
        while not self.ending:
            ready = [fd for fd, _ in poll.poll(None if self.workers else self.idle_s * 1000)]
            if not ready and not self.workers:
                return
            if reader in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(reader, 4096)
            self._reap()
            if self.listener.fileno() in ready and not self.ending:
                self._accept()
        self._end_workers()

    def _note(self, number: int, _frame: object) -> None:
        self.ending = self.ending or number != signal.SIGCHLD

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:  # gone again, or too many descriptors: systemd keeps the rest waiting
            return
        refusal = None
        try:
            caller = caller_of(sock)
            self._refuse_crowd(caller)
            self._fork(sock, caller)
        except EtraceError as error:
            refusal = error
        except OSError as error:
            self.say(f"a connection was dropped: {error.strerror}")
        _close(sock, refusal)

    def _refuse_crowd(self, caller: Caller) -> None:
        of_user = sum(uid == caller.uid for uid in self.workers.values())
        if of_user >= MAX_PER_USER or len(self.workers) >= MAX_CONNECTIONS:
            raise EtraceError("etraced: too many connections", "wait for your other captures")

    def _fork(self, sock: socket.socket, caller: Caller) -> None:
        pid = os.fork()
        if pid:
            self.workers[pid] = caller.uid
            return
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (*SIGNALS, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            self.listener.close()
            serve(sock, caller, self.host)
            status = 0
        except BaseException as error:  # noqa: BLE001  a copy of the daemon must not go on
            self.say(f"a session ended by {type(error).__name__}: {error}")
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == 0:
                return
            self.workers.pop(pid, None)

    def _end_workers(self) -> None:
        """Let each session end with what it has; its caller gets the result."""
        for pid in self.workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        while self.workers:
            time.sleep(PAUSE_S)
            self._reap()


def _close(sock: socket.socket, refusal: EtraceError | None) -> None:
    """Let go of a caller, in REFUSE_S at most.

    The last one who closes a socket that a caller has sent may have to wait for its peer
    (SO_LINGER); only a signal ends that.
    """
    signal.setitimer(signal.ITIMER_REAL, REFUSE_S, REFUSE_S)
    try:
        if refusal:
            _refuse(sock, refusal)
        sock.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _refuse(sock: socket.socket, error: EtraceError) -> None:
    """Answer without a request; one that was left unread would make the answer a reset."""
    sock.setblocking(False)
    with contextlib.suppress(OSError):
        protocol.send(sock, {"error": error.message, "hint": error.hint})
        sock.shutdown(socket.SHUT_RD)  # the request that comes from now on is a broken pipe
        sock.recv(1)


# ---- the socket: systemd's (sd_listen_fds(3)), or one that it makes itself


def inherited_socket() -> socket.socket | None:
    """Return the socket that systemd has passed; None when it has not started this process."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS") != "1":
        return None
    sock = socket.socket(fileno=FIRST_FD)
    sock.set_inheritable(False)
    if (sock.family, sock.type) != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
        raise CaptureError(
            "the socket of LISTEN_FDS is not a local packet socket",
            "etraced.socket has ListenSequentialPacket=",
        )
    return sock


def make_socket(path: Path, group: str) -> socket.socket:
    """Return a new socket at `path` for the members of `group`; an old one there is replaced."""
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise CaptureError(f"there is no group {group}", f"groupadd --system {group}") from error
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = os.umask(0o022)
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        if path.is_socket():
            path.unlink()
        os.umask(0o777)
        sock.bind(os.fspath(path))
        os.chown(path, -1, gid)
        path.chmod(MODE)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise CaptureError(f"{path}: {error.strerror}", "run it as root") from error
    finally:
        os.umask(before)
    return sock
