# SPDX-License-Identifier: Apache-2.0
"""The sources of the tracer give clang no warning; conftest.py builds them with both gcc."""

from __future__ import annotations

import subprocess

import pytest
from windows.wine import TOP, need


@pytest.mark.parametrize("cpu", ["x86_64", "i686"])
def test_clang_has_no_warning(cpu: str) -> None:
    need("clang", "clang")
    command = ["make", "-C", str(TOP / "native/windows"), f"check-{cpu}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"--target={cpu}-w64-mingw32" in done.stdout
    assert "-Wall -Wextra -Werror" in done.stdout
