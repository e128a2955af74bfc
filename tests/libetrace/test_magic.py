# SPDX-License-Identifier: Apache-2.0
"""ELF and LLVM bitcode by their first bytes; file(1)'s words are of binutils and clang."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import libetrace
import pytest


def test_programs_are_elf() -> None:
    assert libetrace.is_ELF_file(sys.executable)
    assert libetrace.is_ELF_file(os.fsencode(sys.executable))
    assert libetrace.is_ELF_or_LLVM_BC_file(Path(sys.executable))
    assert not libetrace.is_LLVM_BC_file(sys.executable)


def test_what_clang_emits_is_bitcode(tmp_path: Path) -> None:
    clang = shutil.which("clang")
    assert clang, "install clang"
    source = tmp_path / "x.c"
    source.write_text("int x;")
    subprocess.run([clang, "-c", "-emit-llvm", "x.c", "-o", "x.bc"], cwd=tmp_path, check=True)
    assert libetrace.is_LLVM_BC_file(tmp_path / "x.bc")
    assert libetrace.is_ELF_or_LLVM_BC_file(tmp_path / "x.bc")
    assert not libetrace.is_ELF_file(tmp_path / "x.bc")


@pytest.mark.parametrize("content", [b"", b"\x7fEL", b"\x7fELG", b"#!/bin/sh\n", b"BC\xc0"])
def test_other_files_are_neither(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x"
    file.write_bytes(content)
    assert not libetrace.is_ELF_or_LLVM_BC_file(file)


def test_what_cannot_be_read_is_neither(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "no", tmp_path / "fifo"):
        assert not libetrace.is_ELF_or_LLVM_BC_file(path)
