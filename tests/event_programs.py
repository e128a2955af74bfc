# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/events and tests/data: what their heads say, and how they are built."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from backends import need_tool

SOURCES = Path(__file__).resolve().parent / "events"
DATA = SOURCES.with_name("data")
SHARED = ("expect", "old_calls")  # of all programs, none itself


def head_value(source: Path, key: str) -> str:
    """Return what the comment at the head of a program says after `key:`."""
    match = re.search(rf"^ \* {key}: (.*)$", source.read_text(), re.MULTILINE)
    return match[1] if match else ""


def check_warnings(source: Path, stderr: bytes) -> None:
    """Fail unless a capture of the program warned of what its head says, and of nothing else."""
    warning = head_value(source, "warns").encode()
    assert warning in stderr, stderr.decode(errors="replace")
    assert warning or stderr == b"", stderr.decode(errors="replace")


def programs(*, root: bool = True) -> list[ParameterSet]:
    """Return every program in each of its modes, those that need root only if asked for."""
    found = []
    for source in sorted(SOURCES.glob("*.c")):
        if source.stem in SHARED:
            continue
        needs_root = head_value(source, "needs") == "root"
        if needs_root and not root:
            continue
        marks = [pytest.mark.root] if needs_root else []
        for mode in ("64", "32"):
            if head_value(source, "only") in ("", mode):
                name = f"{mode}/{source.stem}"
                found.append(pytest.param(name, marks=marks, id=f"{source.stem}-{mode}"))
    return found


def is_of_machine(source: Path, machine: str) -> bool:
    """Return whether a program exists on `machine`, named as `uname -m` does."""
    return head_value(source, "machine") in ("", machine)


def build_programs(out: Path, *compilers: str) -> None:
    """Build all programs as static binaries: out/64/NAME and out/32/NAME.

    `compilers` are those of another machine, as make's variables CC and CC32.
    """
    need_tool("make", "make")
    need_tool("gcc", "gcc")
    done = subprocess.run(
        ["make", "-s", "-j2", "-C", SOURCES, f"OUT={out}", *compilers],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            "tests/events does not build; 32-bit static programs need `apt-get install "
            f"gcc-multilib` (or lib32gcc-*-dev and libc6-dev-i386):\n{done.stderr}"
        )


def compiled(name: str, folder: Path, *flags: str) -> Path:
    """Build a program of tests/data beside `folder`, for each set of flags another one."""
    need_tool("gcc", "gcc")
    program = folder.with_name(f"{name}{''.join(flags)}")
    command: list[str | Path] = [
        "gcc",
        "-O1",
        "-pthread",
        *flags,
        "-o",
        program,
        DATA / f"{name}.c",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"apt-get install libc6-dev-i386 libasan8?\n{done.stderr}"
    return program
