# SPDX-License-Identifier: Apache-2.0
"""Processes as proc(5) shows them (identity, parent, name), and control groups (cgroups(7))."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from etrace.errors import UsageError

PROC = Path("/proc")
#: programs between a shell and an etrace that was started with other rights
INTERMEDIATES = frozenset({"sudo", "doas", "su", "pkexec", "runuser", "etrace"})
INIT = 1


@dataclass(frozen=True, slots=True)
class Process:
    """A process, identified by its number and start time (clock ticks)."""

    pid: int
    start_ticks: int

    def is_alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        fields = _stat(self.pid)
        return fields is not None and int(fields[19]) == self.start_ticks and fields[0] != "Z"

    def open(self) -> int | None:
        """Return a pidfd; None when it has ended."""
        try:
            fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if not self.is_alive():  # asked after the pidfd: it is for this very process, or for none
            os.close(fd)
            return None
        return fd


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def identify(pid: int) -> Process | None:
    """Return the process that has this number now."""
    fields = _stat(pid)
    return None if fields is None else Process(pid, int(fields[19]))


def parent(pid: int) -> int:
    """Return the parent's number; 0 when none is visible."""
    fields = _stat(pid)
    return 0 if fields is None else int(fields[1])


def name(pid: int) -> str:
    """Return the name of a process, `unknown` when it is gone.

    A process chooses its name, which may contain control characters for the reader's terminal.
    """
    try:
        text = (PROC / str(pid) / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        return "unknown"
    return "".join(c if c.isprintable() else "?" for c in text)


def working_directory(pid: int) -> str:
    """Return the working directory of a process, / when it cannot be seen."""
    try:
        return os.readlink(PROC / str(pid) / "cwd")  # noqa: PTH115  a path is bytes, not a Path
    except OSError:
        return "/"


def calling_shell() -> int:
    """Return the nearest ancestor that is not a program like sudo, or etrace itself."""
    pid = os.getppid()
    while pid > INIT and name(pid) in INTERMEDIATES:
        pid = parent(pid)
    if pid <= INIT:
        raise UsageError(
            "there is no shell to trace: etrace was not started from one",
            "name what to trace: --pid PID or --cgroup PATH",
        )
    return pid


def is_leader(pid: int) -> bool:
    """Whether a process, not only one of its threads, has this number."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return False
    return f"\nTgid:\t{pid}\n" in status


# ---- names of control groups -> the form that the kernel module takes

MOUNTS = Path("/proc/self/mountinfo")
FILESYSTEM = "cgroup2"
ROOT_FIELD, MOUNT_POINT_FIELD = 3, 4
ESCAPE = re.compile(r"\\([0-7]{3})")


def cgroup_mount_point() -> Path | None:
    """Return where version 2 of the control groups is mounted, from its root on."""
    for line in MOUNTS.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if after.split(" ", 1)[0] == FILESYSTEM and fields[ROOT_FIELD] == "/":
            return Path(ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[MOUNT_POINT_FIELD]))
    return None


def cgroup_below_mount(given: str) -> str:
    """Return the path of a group below the mount: `/a/b` for that, `a/b` or /sys/fs/cgroup/a/b."""
    full, mount = _cgroup(given)
    return str(Path("/") / full.relative_to(mount))


def cgroup_directory(given: str) -> str:
    """Return the directory of a group, given as for cgroup_below_mount()."""
    return str(_cgroup(given)[0])


def _cgroup(given: str) -> tuple[Path, Path]:
    """Return the directory of a group, and the mount point."""
    mount = cgroup_mount_point()
    if mount is None:
        raise UsageError("control groups version 2 are not mounted", "trace a process: --pid PID")
    path = Path("/", given)
    full = path if path.is_relative_to(mount) else mount / path.relative_to("/")
    full = full.resolve()
    if not full.is_relative_to(mount) or not (full / "cgroup.procs").exists():
        raise UsageError(f"{given}: no such control group", f"see the directories below {mount}")
    return full, mount
