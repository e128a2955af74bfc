# SPDX-License-Identifier: Apache-2.0
"""Who asks, and whether what they hand over is theirs: a trace to write, a process to trace.

A pidfd names a process for good, a number does not: the number is believed only while the pidfd
still has it. Facts come from proc(5), unix(7), pidfd_open(2) and ptrace(2), "access mode checking".
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from libetrace.core.regular_file import mount_of

from etrace.capture.kmod.system.owner import Owner
from etrace.errors import CaptureError

PROC = Path("/proc")
UCRED = struct.Struct("3i")
SLEEPING = "S"
STILL_S = 5.0
PAUSE_S = 0.01
#: of the target, which has nothing else to do; counts of its switches show that it did not run
SWITCHES = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")


class RefusedError(CaptureError):
    """What a caller handed over is not theirs, or of another kind."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"etraced refuses: {reason}", "etrace run --backend ptrace ...")


@dataclass(frozen=True, slots=True)
class Caller:
    """The process that has connected, as the kernel noted it then."""

    pid: int
    uid: int
    gid: int

    @property
    def owner(self) -> Owner:
        """The user whose files are written."""
        return Owner(self.uid, self.gid, (self.gid,))


def caller_of(sock: socket.socket) -> Caller:
    """Return who connected; RefusedError for a process that has no number here."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size)
    pid, uid, gid = UCRED.unpack(raw)
    if pid <= 0:
        raise RefusedError("the caller is in another pid namespace")
    return Caller(pid, uid, gid)


def check_trace(fd: int, caller: Caller) -> None:
    """Refuse a descriptor that is not the caller's own regular file, open to read and write.

    Files of /proc and its like are regular too, and what is written to them is not kept. A FUSE of
    a user answers as it likes, or never.
    """
    mount = mount_of(fd, caller.pid)
    if mount is None or not mount.stores or mount.mounter:
        kind = mount.kind if mount else "unknown to the caller"
        raise RefusedError(f"the trace is on a file system that keeps no files for it ({kind})")
    found = os.fstat(fd)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if not stat.S_ISREG(found.st_mode):
        raise RefusedError("the trace is not a regular file")
    if flags & os.O_PATH or flags & os.O_ACCMODE != os.O_RDWR:
        raise RefusedError("the trace is not open for reading and writing")
    if found.st_uid != caller.uid:
        raise RefusedError("the trace belongs to another user")


@dataclass(frozen=True, slots=True)
class Target:
    """The process to trace, and what its switches were when it was found to be the caller's."""

    pidfd: int
    pid: int
    caller: Caller
    switches: tuple[str, ...]

    def check(self) -> None:
        """Refuse when it has run since, and so may be another program, or none."""
        status = _status(self.pidfd)
        _refuse_foreign(status, self.caller)
        if _switches(status) != self.switches or not _sleeps(status):
            raise RefusedError("the process ran before it was traced")


def check_process(pidfd: int, caller: Caller) -> Target:
    """Return the target of a pidfd once it sleeps; RefusedError when it is not the caller's."""
    give_up = time.monotonic() + STILL_S
    while True:
        status = _status(pidfd)
        _refuse_foreign(status, caller)
        if _sleeps(status):
            return Target(pidfd, int(status["Pid"]), caller, _switches(status))
        if time.monotonic() > give_up:
            raise RefusedError("the process does not wait to be traced")
        time.sleep(PAUSE_S)


def _pid_of(pidfd: int) -> int:
    """Return the number of the process of a pidfd; RefusedError when there is none."""
    text = (PROC / "self/fdinfo" / str(pidfd)).read_text()
    _, found, rest = text.partition("\nPid:\t")
    pid = int(rest.split()[0]) if found else -1
    if pid <= 0:
        raise RefusedError("the process has ended, or no pidfd was handed over")
    return pid


def _status(pidfd: int) -> dict[str, str]:
    """Return /proc/PID/status of the very process, and the owner of its secrets as `Owner`."""
    pid = _pid_of(pidfd)
    try:
        fields = _fields(pid)
        # who may look at the memory of a process owns this file; root, when it is set-uid
        fields["Owner"] = str((PROC / str(pid) / "environ").stat().st_uid)
    except OSError as error:
        raise RefusedError("the process has ended") from error
    if _pid_of(pidfd) != pid:
        raise RefusedError("the process has ended")
    return fields


def _fields(pid: int) -> dict[str, str]:
    text = (PROC / str(pid) / "status").read_text(errors="replace")
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in pairs}


def _refuse_foreign(status: dict[str, str], caller: Caller) -> None:
    """Refuse what the caller could not trace with ptrace(2), or has not started itself."""
    uids, gids = status["Uid"].split(), status["Gid"].split()
    if set(uids) != {str(caller.uid)}:
        raise RefusedError("the process belongs to another user")
    if len(set(gids)) != 1 or status["Owner"] != str(caller.uid):
        raise RefusedError("the process has rights that its user does not have")
    if status["Pid"] != status["Tgid"] or status["Threads"] != "1":
        raise RefusedError("the process has threads")
    if status["PPid"] != str(caller.pid):
        raise RefusedError("the process is not a child of the caller")
    try:
        own = int(_fields(caller.pid)["CapPrm"], 16)
    except (OSError, KeyError) as error:
        raise RefusedError("the caller has ended") from error
    if int(status["CapPrm"], 16) & ~own:
        raise RefusedError("the process has capabilities that the caller does not have")


def _sleeps(status: dict[str, str]) -> bool:
    return status["State"].startswith(SLEEPING)


def _switches(status: dict[str, str]) -> tuple[str, ...]:
    return tuple(status[name] for name in SWITCHES)


def file_size_limit(caller: Caller) -> int:
    """Return the caller's RLIMIT_FSIZE in bytes, -1 for none or when the caller has ended."""
    try:
        text = (PROC / str(caller.pid) / "limits").read_text()
    except OSError:
        return -1
    word = text.partition("\nMax file size")[2].split(maxsplit=1)[0]
    return int(word) if word.isdigit() else -1
