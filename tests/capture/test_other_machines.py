# SPDX-License-Identifier: Apache-2.0
"""The tracer's C compiles for the machines whose system call numbers it knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from backends import need_tool

TOP = Path(__file__).resolve().parents[2]
FOLDERS = [TOP / "native" / name for name in ("format", "capture", "ptrace", "preload/collector")]
LIBRARY = TOP / "native" / "preload" / "library"
SOURCES = [source for folder in [*FOLDERS, LIBRARY] for source in sorted(folder.rglob("*.c"))]
ARM64_HEADERS = Path("/usr/aarch64-linux-gnu/include")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_it_compiles_for_arm64(source: Path) -> None:
    need_tool("clang", "clang")
    assert ARM64_HEADERS.is_dir(), "no arm64 headers: apt-get install libc6-dev-arm64-cross"
    folders = [TOP / "kmod" / "include", TOP / "native", *FOLDERS]
    includes = [*(f"-I{folder}" for folder in folders), f"-isystem{ARM64_HEADERS}"]
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    flags += ["-D_GNU_SOURCE", '-DETRACE_VERSION="0"']
    if source.parent == LIBRARY:
        flags += ["-ffreestanding", "-fno-builtin"]
    done = subprocess.run(
        ["clang", "--target=aarch64-linux-gnu", *flags, *includes, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
