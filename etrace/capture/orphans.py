# SPDX-License-Identifier: Apache-2.0
"""What a capture leaves when it is killed: its tracer, the traced processes, a temporary directory.

SIGKILL lets a process clean nothing up. So a child of its own session waits for the end of this
process, which closes their pipe, and cleans up instead. The build ends as it does with the ptrace
backend when its tracer is killed: below a seccomp filter without a tracer its calls would fail
(ENOSYS, seccomp(2)), and nobody would get what it is captured for.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from typing import NoReturn

#: sent when the capture ended by itself
DONE = b"."
#: between two looks at what a tracer still traces
POLL_MS = 10
#: that find nothing, in a row: one may miss a child of a process that ends meanwhile
N_LOOKS = 3


@contextlib.contextmanager
def temporary_directory(prefix: str) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Yield a new directory that goes away whatever happens, and a function.

    It takes the pid of a child, a tracer, that is to end with this process. OSError.
    """
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory:
        pid = os.fork()
        if pid == 0:
            _watch(reader, writer, directory)
        os.close(reader)
        try:
            yield directory, lambda tracer: _say(writer, b"%d\n" % tracer)
        finally:
            _say(writer, DONE)
            os.close(writer)
            os.waitpid(pid, 0)


def _say(writer: int, text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # somebody killed the child
        os.write(writer, text)


def _watch(reader: int, writer: int, directory: str) -> NoReturn:
    """Wait for the end of the parent, and clean up when it was killed."""
    try:
        os.setsid()  # what is sent to the group, or by a terminal, is not for this process
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # a reader of the output is not to wait for this process
            os.dup2(null, fd)
        os.close(writer)
        os.chdir("/")
        _close_others(reader)
        _clean_up(reader, directory)
    finally:
        os._exit(0)


def _close_others(kept: int) -> None:
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _clean_up(reader: int, directory: str) -> None:
    tracers: list[tuple[int, int]] = []
    while (text := os.read(reader, 4096)) and text != DONE:
        for word in text.rstrip(DONE).split():
            with contextlib.suppress(OSError):  # ended meanwhile; its number may be another's
                tracers.append((int(word), os.pidfd_open(int(word))))
        if text.endswith(DONE):
            return
    if text:
        return
    for pid, fd in tracers:
        _end(pid, fd)
    shutil.rmtree(directory, ignore_errors=True)


def _end(tracer: int, fd: int) -> None:
    """End what a tracer started or traces, then it: with nothing left it cleans up and ends."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    n_looks = 0
    while not poll.poll(POLL_MS):
        found = _below(tracer)
        n_looks = 0 if found else n_looks + 1
        if n_looks == N_LOOKS:
            break
        for pid in found:
            _kill(pid, tracer)
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(fd, signal.SIGTERM)


def _kill(pid: int, tracer: int) -> None:
    with contextlib.suppress(OSError):
        fd = os.pidfd_open(pid)
        try:
            if pid in _below(tracer):  # still, so that the number is not another's
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def _below(root: int) -> set[int]:
    """Return the living processes that one started or traces, and theirs."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  names, not paths
        if name.isdigit():
            for other in _above(int(name)):
                below.setdefault(other, []).append(int(name))
    found, ahead = set[int](), [root]
    while ahead:
        new = set(below.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def _above(pid: int) -> set[int]:
    """Return the parent and the tracer of a process, none of one that has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as stream:  # noqa: PTH123  many, and soon gone
            fields = dict(line.split(b":", 1) for line in stream if b":" in line)
    except OSError:
        return set()
    if fields[b"State"].split()[:1] in ([b"Z"], [b"X"]):
        return set()
    return {int(fields[b"PPid"]), int(fields[b"TracerPid"])}
