# SPDX-License-Identifier: Apache-2.0
"""etraced on a fake machine, and an ordinary user's processes that ask it."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fake_kernel import NOBODY, Machine

from etrace.capture.remote import protocol
from etrace.service.daemon import SIGNALS, Daemon

IDLE_S = 60.0
FORK = multiprocessing.get_context("fork")
#: becomes an ordinary user whom the kernel allows all that one may do (prctl(2), PR_SET_DUMPABLE);
#: in Python, because its files may be in root's home
DROP = f"""
import ctypes, os
def drop():
    os.setgroups([])
    os.setgid({NOBODY.gid})
    os.setuid({NOBODY.uid})
    os.chdir("/")
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
"""
#: `etrace run` without its command line: prints [status, remarks, stats], or [message, hint]
CLIENT = f"""{DROP}
import json, sys
from etrace.capture.options import Options
from etrace.capture.remote import client, service
from etrace.errors import EtraceError
service.SOCKET, directory, *command = sys.argv[1:]
drop()
try:
    options = Options(directory + "/.nfsdb", directory + "/.nfsdb.stats")
    done = client.trace(command, options, None)
    print(json.dumps([done.status, list(done.remarks), done.stats]))
except EtraceError as error:
    print(json.dumps([error.message, error.hint]))
"""


class Service:
    """A running etraced; `path` is its socket."""

    def __init__(self, machine: Machine, path: Path) -> None:
        self.machine = machine
        self.path = path
        self.said = machine.root / "said"
        self.process: Any = None

    def start(self, idle_s: float = IDLE_S) -> None:
        """Start it, with a new socket."""
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(self.path))
        self.path.chmod(0o666)
        listener.listen(8)
        self.process = FORK.Process(target=self._serve, args=(listener, idle_s))
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        listener.close()

    def _serve(self, listener: socket.socket, idle_s: float) -> None:
        os.setpgid(0, 0)
        for number in SIGNALS:  # as systemd starts it: without what a test left in this process
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        gc.freeze()  # what the tests left is not this process's to take apart
        Daemon(listener, self.machine.host, self._say, idle_s).run()

    def _say(self, text: str) -> None:
        with self.said.open("a") as file:
            file.write(f"{text}\n")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal and wait; SIGKILL is for all of it, as systemd does it."""
        if number == signal.SIGKILL:
            os.killpg(self.process.pid, number)
        else:
            os.kill(self.process.pid, number)
        self.process.join(30)
        assert self.process.exitcode is not None, "etraced goes on"

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A connection of this process."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(20)
            sock.connect(str(self.path))
            yield sock

    def ask(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> dict[str, Any] | None:
        """Send one message and return what comes."""
        with self.connected() as sock:
            return protocol.ask(sock, message, fds)

    def client(self, directory: Path, *command: str) -> subprocess.Popen[bytes]:
        """Start a capture of an ordinary user."""
        return python(CLIENT, str(self.path), str(directory), *command)

    def run(self, directory: Path, *command: str) -> Any:
        """Capture a command as an ordinary user; see CLIENT."""
        return answer(self.client(directory, *command))


def as_nobody(argv: list[str], **more: Any) -> subprocess.Popen[bytes]:
    """Start a process of an ordinary user; its standard output is a pipe."""
    return subprocess.Popen(
        argv, user=NOBODY.uid, group=NOBODY.gid, extra_groups=[], cwd="/",
        stdout=subprocess.PIPE, **more,
    )  # fmt: skip


def python(source: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start Python, which calls drop() when it has imported what it needs."""
    argv = [sys.executable, "-c", source, *arguments]
    return subprocess.Popen(argv, stdout=subprocess.PIPE)


def answer(client: subprocess.Popen[bytes]) -> Any:
    """Wait for a capture and return what it printed."""
    out, _ = client.communicate(timeout=60)
    return json.loads(out)
