# SPDX-License-Identifier: Apache-2.0
"""The backends that work on this machine, and the facts that decide it.

Facts come from proc(5), ptrace(2) and the yama documentation of the kernel.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from etrace.capture import registry
from etrace.capture.backend import Probe
from etrace.capture.bpf import findings as bpf_findings
from etrace.capture.kmod import findings
from etrace.capture.kmod.findings import Check
from etrace.capture.kmod.host import Host
from etrace.capture.ptrace import status_field

YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
YAMA_MEANING = {
    "0": "any process of yours may be traced",
    "1": "children may be traced (enough)",
    "2": "only with CAP_SYS_PTRACE",
    "3": "tracing is forbidden",
}
SECCOMP_MEANING = {
    "0": "none",
    "1": "strict",
    "2": "a filter is installed (a container's profile?)",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line about the machine."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One backend and whether it works."""

    backend: str
    description: str
    probe: Probe


def _yama() -> str:
    if not YAMA.exists():
        return "not in this kernel (no restriction)"
    value = YAMA.read_text().strip()
    return f"{value}: {YAMA_MEANING.get(value, 'unknown')}"


def facts() -> Iterator[Fact]:
    """Yield the facts that decide whether a build can be traced here."""
    yield Fact("kernel", f"{platform.release()} {platform.machine()}")
    yield Fact("user", "root" if os.geteuid() == 0 else f"uid {os.geteuid()}, not root")
    yield Fact("capabilities", f"0x{status_field('CapEff')}")
    yield Fact("yama ptrace_scope", _yama())
    seccomp = status_field("Seccomp")
    yield Fact("seccomp", SECCOMP_MEANING.get(seccomp, seccomp))
    tracer = status_field("TracerPid")
    yield Fact(
        "traced by",
        "nobody" if tracer == "0" else f"process {tracer}: a process has one tracer only",
    )


def strangers() -> Iterator[Check]:
    """Yield distributions of Python that take the place of this etrace.

    PyPI's `etrace` is another program (docs/decisions/0036-packages-and-releases.md).
    """
    for found in distributions(name="etrace"):
        where = found.locate_file("")
        yield Check(
            "distribution etrace",
            f"{found.version} in {where} is not this program and may replace its files",
            False,
            "remove it with the pip that installed it (pip uninstall etrace), "
            "then install this etrace again",
        )


def bpf_programs() -> Iterator[Check]:
    """Yield the needs of the BPF programs, and whether they are met here."""
    return bpf_findings.examine(bpf_findings.Kernel())


def kernel_module() -> Iterator[Check]:
    """Yield the needs of the kernel module, and whether they are met here."""
    return findings.examine(Host(), findings.Kernel())


def examine() -> list[Finding]:
    """Try every backend."""
    return [Finding(b.name, b.description, b.probe()) for b in registry.BACKENDS]
