# SPDX-License-Identifier: Apache-2.0
"""The capture backends that are programs, and how a command is run under one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from etrace.capture import registry


@dataclass(frozen=True, slots=True)
class Backend:
    """A program that runs a command and writes its event lines to a file."""

    name: str
    program: str  # absolute, or its name in etrace/libexec of the installed package
    variable: str  # environment variable that names another build of it, or empty

    def path(self) -> Path:
        """Return the program; a missing one fails the test with what to do about it."""
        named = os.environ.get(self.variable) if self.variable else None
        installed = Path(sysconfig.get_path("platlib")) / "etrace" / "libexec" / self.program
        path = Path(named) if named else installed
        if not path.is_file():
            pytest.fail(f"{path} is missing: run `make build`, or set {self.variable} to a build")
        return path

    def of(self, program: Path) -> Backend:
        """Return the same backend with its program in another place."""
        return replace(self, program=str(program), variable="")

    def command(
        self, trace: Path, command: Sequence[str | Path], options: Sequence[str]
    ) -> list[str]:
        """Return the command line that captures `command` into `trace`."""
        return [str(self.path()), "-o", str(trace), *options, "--", *map(str, command)]


PTRACE = Backend("ptrace", "etrace-ptrace", "ETRACE_PTRACE")
BPF = Backend("bpf", "etrace-bpf", "ETRACE_BPF")
PRELOAD = Backend("preload", "etrace-preload", "ETRACE_PRELOAD_PROGRAM")


def names_without_module() -> list[str]:
    """Return the names of the backends that `etrace run` can use here; bpf is root's."""
    rights = {"kmod": False, "bpf": os.geteuid() == 0}
    return [each.name for each in registry.BACKENDS if rights.get(each.name, True)]


def public_libraries(folder: Path) -> list[str]:
    """Return the options for libraries that every user can read: the installed ones may not be."""
    libraries = folder / "libraries"
    if not libraries.exists():
        shutil.copytree(PRELOAD.path().with_name("preload"), libraries)
    return ["--libraries", str(libraries)]


@dataclass(frozen=True, slots=True)
class Captured:
    """What a captured command left: its trace, its status and what it printed."""

    trace: Path
    status: int
    stdout: bytes
    stderr: bytes


def capture(
    command: Sequence[str | Path],
    cwd: Path,
    *,
    backend: Backend = PTRACE,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 120,
    trace: Path | None = None,
    user: int | None = None,
) -> Captured:
    """Run `command` under `backend` in `cwd`, as `user` and its group when one is given.

    The trace is beside `cwd`, not in it.
    """
    trace = trace or cwd.with_name(cwd.name + ".nfsdb")
    done = subprocess.run(
        backend.command(trace, command, options),
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    return Captured(trace, done.returncode, done.stdout, done.stderr)


def need_tool(tool: str, package: str) -> str:
    """Return the path of `tool`; fail the test with the package that has it."""
    path = shutil.which(tool)
    if path is None:
        pytest.fail(f"{tool} is missing: apt-get install {package}")
    return path


def need_root() -> None:
    """Fail a test marked `root` that is run without."""
    if os.geteuid() != 0:
        pytest.fail("this test needs uid 0: run it with sudo, or leave it out with -m 'not root'")
