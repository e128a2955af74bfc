# SPDX-License-Identifier: Apache-2.0
"""The conditions of the BPF programs on this machine, and what cures each, for `etrace doctor`.

Facts come from capabilities(7), kernel_lockdown(7), getrlimit(2) and, for the accounting of the
memory of BPF maps, the kernel's commit d5299b67dd59 (5.11).
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from etrace.capture.bpf import backend
from etrace.capture.kmod import findings
from etrace.capture.kmod.findings import Check
from etrace.capture.ptrace import libexec

#: the first kernel with all that the programs use, and the first without RLIMIT_MEMLOCK for maps
OLDEST, UNLIMITED = (5, 10), (5, 11)
#: the same files as for the kernel module
OF_MODULE = findings.Kernel()
ELSE = "or trace without BPF: etrace run --backend ptrace"


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the kernel says of itself; tests replace it."""

    release: str = os.uname().release
    types: Path = Path("/sys/kernel/btf/vmlinux")
    sysfs: Path = Path("/sys/kernel")
    lockdown: Path = OF_MODULE.lockdown
    uid_map: Path = OF_MODULE.uid_map
    memlock_bytes: int = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]

    @property
    def version(self) -> tuple[int, int]:
        """Its version as two numbers, (0, 0) when the release has none."""
        found = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(found[1]), int(found[2])) if found else (0, 0)


def program() -> Check:
    """Return where the program is, or how to get it."""
    path = libexec(backend.PROGRAM)
    obstacle = backend.BpfBackend().obstacle()
    if os.access(path, os.X_OK) or obstacle is None:
        return Check("program", path, True)
    return Check("program", obstacle.reason, False, obstacle.hint)


def rights(kernel: Kernel) -> Check:
    """Return whether the program will have its capabilities, outside of a user namespace."""
    mask = backend.held()
    if not backend.is_enough(mask):
        missing = [name for name, bit in backend.CAPABILITIES.items() if not mask >> bit & 1]
        hint = backend.how_to_get_rights(libexec(backend.PROGRAM))
        return Check("rights", f"missing: {', '.join(missing)}", False, hint)
    if kernel.uid_map.read_text().split() != ["0", "0", "4294967295"]:
        return Check(
            "rights", "those of a user namespace only", False, "run it outside of the container"
        )
    return Check("rights", "sufficient", True)


def version(kernel: Kernel) -> Check:
    """Return whether the kernel is new enough."""
    is_new = kernel.version >= OLDEST
    wanted = ".".join(map(str, OLDEST))
    hint = "" if is_new else f"boot Linux {wanted} or newer, {ELSE}"
    return Check("kernel", kernel.release, is_new, hint)


def types(kernel: Kernel) -> Check:
    """Return whether the kernel describes its types, by which the programs find its members."""
    if os.access(kernel.types, os.R_OK):
        return Check("type information", str(kernel.types), True)
    if not kernel.sysfs.exists():
        return Check(
            "type information", "/sys is not mounted", False, "sudo mount -t sysfs sysfs /sys"
        )
    return Check(
        "type information",
        f"{kernel.types} is missing: the kernel was built without CONFIG_DEBUG_INFO_BTF",
        False,
        f"boot a kernel that has it (Debian's do), {ELSE}",
    )


def lockdown(kernel: Kernel) -> Check:
    """Return whether programs may read the kernel's memory."""
    mode = findings.lockdown(findings.Kernel(lockdown=kernel.lockdown)).value
    holds = mode != "confidentiality"
    hint = "" if holds else f"boot with lockdown=integrity, {ELSE}"
    return Check("lockdown", mode if holds else f"{mode}: no program may read", holds, hint)


def memory(kernel: Kernel) -> Check:
    """Return whether the maps fit into the limit of locked memory, which old kernels apply."""
    applies = kernel.version < UNLIMITED and os.geteuid() != 0
    if not applies or kernel.memlock_bytes == resource.RLIM_INFINITY:
        return Check("locked memory", "no limit applies", True)
    return Check(
        "locked memory",
        f"limited to {kernel.memlock_bytes} bytes",
        False,
        "sudo prlimit --pid $$ --memlock=unlimited",
    )


def examine(kernel: Kernel) -> Iterator[Check]:
    """Yield every condition of capture by BPF."""
    yield program()
    for check in (rights, version, types, lockdown, memory):
        yield check(kernel)
