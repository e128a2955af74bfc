# SPDX-License-Identifier: Apache-2.0
"""The command of `etrace run`: it is forked, held until the kernel traces it, and waited for.

The child opens nothing and closes what the command will not get before it is traced, so that the
trace begins with the command: no Close lines of etrace's own descriptors.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import select
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from etrace.capture import limits
from etrace.capture.ptrace import explain
from etrace.errors import CaptureError

NOT_FOUND, NOT_EXECUTABLE, ETRACE_FAILED = 127, 126, 125
#: of the error number that the child leaves
ERROR_BYTES = 4
GO = signal.SIGUSR1
PR_SET_PDEATHSIG = 1
#: the held child checks this often whether etrace still runs
CHECK_S = 1
#: signals that Python ignores and a command expects to have their default
PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `signal` is 0 when it exited."""

    status: int
    signal: int


class Command:
    """A child that waits to become a command.

    With `still` it sleeps without a break until then: etraced sees by that that it is what it was.
    """

    def __init__(self, argv: list[str], *, still: bool = False) -> None:
        """Fork; the child waits for release()."""
        self.name = argv[0].rpartition("/")[2]
        self._argv = argv
        self._failure = mmap.mmap(-1, ERROR_BYTES)  # shared with the child
        parent = os.getpid()
        follow = _death_signal() if still else None
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {GO})
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(argv, before, parent, follow, self._failure)
        except OSError as error:
            raise CaptureError(
                f"cannot start the command: {error.strerror}", "end other processes"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._fd = os.pidfd_open(self.pid)
        self._released = False
        self._ended: Ended | None = None

    def fileno(self) -> int:
        """Return the pidfd of the child."""
        return self._fd

    def release(self) -> None:
        """Let the child execute the command."""
        self._released = True
        self.send(GO)

    def send(self, number: int) -> None:
        """Send a signal to the command; nothing when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    def wait(self, tick_s: float, on_tick: Callable[[], None]) -> Ended:
        """Wait for the command to end; call `on_tick` every `tick_s` seconds meanwhile."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while not poll.poll(tick_s * 1000):
            on_tick()
        ended = self._reap()
        error = int.from_bytes(self._failure[:], sys.byteorder)
        return Ended(explain(self._argv, error), 0) if error else ended

    def forsake(self) -> None:
        """End a child that has not executed the command; wait for one that has."""
        if self._ended is None:
            if not self._released:
                self.send(signal.SIGKILL)
            self._reap()

    def close(self) -> None:
        """Close the descriptors that watch it."""
        os.close(self._fd)

    def _reap(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._ended = Ended(code, 0) if code >= 0 else Ended(128 - code, -code)
        return self._ended


def _death_signal() -> Callable[[int], None]:
    """Return a function that asks for a signal at the parent's death, prctl(2); 0: for none."""
    import ctypes  # noqa: PLC0415  slow to import, and only for etraced

    libc = ctypes.CDLL(None)

    def ask(number: int) -> None:
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0)

    return ask


def _wait_for_go(parent: int, follow: Callable[[int], None] | None) -> None:
    """Return when etrace says so; end when it has ended."""
    if follow is None:
        while not signal.sigtimedwait({GO}, CHECK_S):
            if os.getppid() != parent:
                os._exit(ETRACE_FAILED)
        return
    follow(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(ETRACE_FAILED)
    signal.sigwait({GO})
    follow(0)


def _become(
    argv: list[str],
    mask: set[int | signal.Signals],
    parent: int,
    follow: Callable[[int], None] | None,
    failure: mmap.mmap,
) -> NoReturn:
    """Wait for GO, then execute; never returns, whatever happens: it is a copy of etrace.

    `failure` gets the error of execve(2): its explanation would be in the trace of this process.
    """
    status = ETRACE_FAILED
    try:
        _close_on_exec_now()
        path = _locate(argv[0])
        _wait_for_go(parent, follow)
        for number in PYTHON_IGNORES:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        limits.restore()
        os.execv(path, argv)  # noqa: S606  the user's command
    except OSError as error:
        code = error.errno or errno.ENOENT
        status = NOT_FOUND if code == errno.ENOENT else NOT_EXECUTABLE
        failure[:] = code.to_bytes(len(failure), sys.byteorder)
    finally:
        os._exit(status)


def _locate(name: str) -> str:
    """Return the file that a shell would execute; the name itself when there is none."""
    return name if "/" in name else shutil.which(name) or shutil.which(name, mode=os.F_OK) or name


def _close_on_exec_now() -> None:
    for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208  numbers, not paths
        with contextlib.suppress(OSError):  # the one that listed them
            if fcntl.fcntl(int(entry), fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                os.close(int(entry))
