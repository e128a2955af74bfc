# SPDX-License-Identifier: Apache-2.0
"""BPF programs at the kernel's tracepoints as a backend: it drives the C program etrace-bpf.

docs/capture-bpf.md describes it; capabilities(7) has the rights and their form in a file.
"""

from __future__ import annotations

import os

from etrace.capture.ptrace import PtraceBackend, libexec, refusal, status_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from etrace.capture.backend import Probe

PROGRAM = "etrace-bpf"
#: what loading and attaching the programs takes
CAPABILITIES = {"CAP_BPF": 39, "CAP_PERFMON": 38}
WANTED = sum(1 << bit for bit in CAPABILITIES.values())
SYS_ADMIN = 1 << 21
#: the file attribute with the capabilities of a program: magic and flags, then the sets by halves
ATTRIBUTE = "security.capability"
REVISION_1 = 1
#: the group in the instructions of docs/capture-bpf.md
GROUP = "etrace"
PREFIX = "etrace: "
NEED = "BPF programs need root with CAP_BPF and CAP_PERFMON, or a program file that has them"


def held() -> int:
    """Return the capabilities that etrace-bpf will have, as a mask. OSError without /proc."""
    bound = int(status_field("CapBnd"), 16)
    if os.geteuid() == 0:
        return bound  # execve(2) gives root all of them
    ambient = int(status_field("CapAmb"), 16)
    return ambient if status_field("NoNewPrivs") == "1" else ambient | _of_file() & bound


def _of_file() -> int:
    """Return the capabilities that the program's file gives."""
    try:
        value = os.getxattr(libexec(PROGRAM), ATTRIBUTE)
    except OSError:
        return 0
    words = [int.from_bytes(value[at : at + 4], "little") for at in range(0, 20, 4)]
    high = 0 if words[0] >> 24 == REVISION_1 else words[3]
    return words[1] | high << 32


def is_enough(mask: int) -> bool:
    """Whether these capabilities load BPF programs that read the kernel."""
    return bool(mask & SYS_ADMIN) or mask & WANTED == WANTED


class BpfBackend(PtraceBackend):
    """Programs in the kernel that record without stopping the build; no module."""

    name = "bpf"
    description = "BPF programs in the kernel; needs root or two capabilities"
    program = PROGRAM

    def obstacle(self) -> Probe | None:
        """See Backend.obstacle: no program, or not the rights to load one."""
        path = libexec(PROGRAM)
        if not os.path.isfile(path):
            from etrace.capture import features

            return refusal(f"{path} was not built", features.BPF.hint, expected=True)
        if not os.access(path, os.X_OK):
            return _of_group_only(path)
        try:
            if is_enough(held()):
                return None
        except OSError:  # no /proc: the program says so
            return None
        return refusal(NEED, how_to_get_rights(path), expected=True)

    def is_out_of_question(self) -> bool:
        """See Backend.is_out_of_question: any obstacle is an expected one."""
        return self.obstacle() is not None

    def probe(self) -> Probe:
        """Load the programs into the kernel."""
        import subprocess

        from etrace.capture.backend import Probe

        if (obstacle := self.obstacle()) is not None:
            return obstacle
        done = subprocess.run(
            [libexec(PROGRAM), "--probe"], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return Probe(True, "the kernel accepts the programs")
        reason = done.stderr.strip().partition("\n")[0].removeprefix(PREFIX)
        return refusal(
            reason or f"etrace-bpf ended with status {done.returncode}",
            "etrace doctor names what BPF programs need",
            expected=True,
        )


def how_to_get_rights(path: str) -> str:
    """Return what gives the program its rights: as root of a container, or as a user."""
    if os.geteuid() == 0:
        return "start the container with --cap-add BPF --cap-add PERFMON"
    return (
        "sudo etrace run ..., or let a group use it (docs/capture-bpf.md#for-a-group): "
        f"sudo groupadd -f {GROUP} && sudo chgrp {GROUP} {path} && sudo chmod 750 {path}"
        f" && sudo setcap cap_bpf,cap_perfmon+ep {path}"
    )


def _of_group_only(path: str) -> Probe:
    """Return the obstacle that the program is for the members of its group."""
    import grp

    number = os.stat(path).st_gid
    try:
        group = grp.getgrgid(number).gr_name
    except KeyError:
        group = str(number)
    return refusal(
        f"only root and group {group} may run {path}",
        f'sudo usermod -aG {group} "$USER" and log in again, or sudo etrace run ...',
        expected=True,
    )
