# SPDX-License-Identifier: Apache-2.0
"""Names of control groups (cgroups(7)) -> the form that the kernel module takes."""

from __future__ import annotations

import re
from pathlib import Path

from etrace.errors import UsageError

MOUNTS = Path("/proc/self/mountinfo")
FILESYSTEM = "cgroup2"
ROOT_FIELD, MOUNT_POINT_FIELD = 3, 4
ESCAPE = re.compile(r"\\([0-7]{3})")


def mount_point() -> Path | None:
    """Return where version 2 of the control groups is mounted, from its root on."""
    for line in MOUNTS.read_text(errors="surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if after.split(" ", 1)[0] == FILESYSTEM and fields[ROOT_FIELD] == "/":
            return Path(ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[MOUNT_POINT_FIELD]))
    return None


def below_mount(given: str) -> str:
    """Return the path of a group below the mount: `/a/b` for that, `a/b` or /sys/fs/cgroup/a/b."""
    mount = mount_point()
    if mount is None:
        raise UsageError("control groups version 2 are not mounted", "trace a process: --pid PID")
    path = Path("/", given)
    full = path if path.is_relative_to(mount) else mount / path.relative_to("/")
    full = full.resolve()
    if not full.is_relative_to(mount) or not (full / "cgroup.procs").exists():
        raise UsageError(f"{given}: no such control group", f"see the directories below {mount}")
    return str(Path("/") / full.relative_to(mount))
