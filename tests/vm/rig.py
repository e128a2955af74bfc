# SPDX-License-Identifier: Apache-2.0
"""What a guest is given, programs and module, and what it leaves: the files of its phases."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
import sources
import strace_log
from backends import BPF, PTRACE, need_tool
from event_programs import SOURCES, build_programs, head_value, is_of_machine, programs
from vm import kernels, machine
from vm.archive import run, tool

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build" / "vm"
# What a build executes most.
EXECUTED = (
    "make",
    "gcc",
    "as",
    "ld",
    "ar",
    "sh",
    "strace",
    "cat",
    "cp",
    "ln",
    "mv",
    "rm",
    "sed",
    "tr",
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest that has run; what it left is in `work`."""

    kernel: kernels.Kernel
    work: Path
    ran: machine.Ran

    def phase(self, *words: str) -> Path:
        """Return the log of a phase; fail when the phase did."""
        label = "-".join(words)
        log = self.work / "out" / f"{label}.log"
        status = self.work / "out" / f"{label}.status"
        if not status.exists():
            pytest.fail(f"the guest did not run phase {label}")
        if status.read_text() != "0\n":
            text = log.read_text(errors="replace")[-4000:]
            pytest.fail(f"phase {label} failed ({status.read_text().strip()}):\n{text}")
        return log

    def console(self, *words: str) -> str:
        """Return what the kernel said during a phase."""
        _, mark, text = self.ran.console.partition(f"etrace-phase {'-'.join(words)}\n")
        assert mark, f"phase {words} is not in the console's log"
        return text.partition("etrace-phase ")[0]


def executed() -> list[Path]:
    """Return the programs of a C build and the libraries that they load."""
    inner = [run("gcc", f"-print-prog-name={name}").strip() for name in ("cc1", "collect2")]
    programs = [need_tool(name, name) for name in (*EXECUTED, *inner)]
    libraries = re.findall(r" (/\S+) \(0x", run("ldd", *programs))
    return sorted({Path(path).resolve() for path in (*programs, *libraries)})


def wanted(items: Iterable[pytest.Item], kernel: str) -> list[str]:
    """Return the phases that the tests on `kernel` name, each once, in order of appearance."""
    found: dict[str, None] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and callspec.params.get("guest") == kernel:
            for mark in item.iter_markers("phase"):
                found[":".join(mark.args)] = None
    return list(found)


def prepare(kernel: kernels.Kernel, work: Path) -> None:
    """Put the module, the programs of tests/events, those of the guest and sources into `work`."""
    kernels.build_module(kernel, work)
    variables = kernel.program_variables
    for variable in variables:
        tool(variable.partition("=")[2])
    build_programs(work / "programs", *variables)
    run("make", "-s", "-j2", "-C", machine.GUEST, f"OUT={work}/bin", *variables)
    names = [str(program.values[0]) for program in programs()]
    lines = [
        f"{name} {head_value(source_of(name), 'options')}\n"
        for name in names
        if is_of_machine(source_of(name), kernel.machine)
    ]
    (work / "programs.list").write_text("".join(lines))
    if kernel.machine == platform.machine():
        shutil.copy(BPF.path(), work / "bin")


def source_of(program: str) -> Path:
    """Return the source of `MODE/NAME`."""
    return SOURCES / f"{Path(program).name}.c"


def must_exist(guest: Guest, program: str) -> None:
    """Leave a program out that makes calls which the guest's kernel does not have."""
    source = source_of(program)
    if not is_of_machine(source, guest.kernel.machine):
        pytest.skip(f"makes calls that {guest.kernel.machine} does not have")
    since = head_value(source, "since")
    if since and version(guest.kernel.release) < version(since):
        pytest.skip(f"makes a call of Linux {since}")


def version(release: str) -> tuple[int, ...]:
    """Return the first two numbers of a kernel's release."""
    return tuple(int(word) for word in re.findall(r"\d+", release)[:2])


def prepare_builds(work: Path, names: Iterable[str]) -> None:
    """Put what guest/build.sh builds, and its tracers, into `work`.

    A name is that of a folder of tests/data, or of a Debian package.
    """
    (work / "sources").mkdir()
    for name in names:
        ours = TOP / "tests" / "data" / name
        if ours.is_dir():
            shutil.copytree(ours, work / "sources" / name)
        else:
            sources.fetch(name, work / "unpacked").rename(work / "sources" / name)
    need_tool("strace", "strace")
    (work / "memory.list").write_text("".join(f"{path}\n" for path in executed()))
    options = [*strace_log.OPTIONS, "-e", f"trace={strace_log.CALLS}"]
    (work / "strace.options").write_text("\n".join(options))
    (work / "ptrace.path").write_text(str(PTRACE.path()))


def numbers(path: Path) -> dict[str, int]:
    """Read the lines `name value` of a file whose values are numbers."""
    words = (line.partition(" ") for line in path.read_text().splitlines())
    return {name: int(value) for name, _, value in words if value.isdigit()}
