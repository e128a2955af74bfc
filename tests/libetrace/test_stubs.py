# SPDX-License-Identifier: Apache-2.0
"""The stubs say what the modules have: mypy.stubtest over every module that has one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import libetrace
import pytest

INSTALLED = Path(libetrace.__file__).parent
SOURCES = Path(__file__).resolve().parents[2] / "cython"
#: what Cython adds to every module and class
CYTHON = r"libetrace\.\w+\.(\w+\.)?(__test__|__pyx_\w+|__reduce\w*__|__setstate\w*__)"


@pytest.mark.slow
def test_stubs_are_as_the_modules(tmp_path: Path) -> None:
    stubs = {path.stem for path in INSTALLED.glob("*.pyi")} - {"__init__"}
    native = {path.name.partition(".")[0] for path in INSTALLED.glob("*.so")}
    allowed = [CYTHON, *(rf"libetrace\.{re.escape(name)}" for name in sorted(native - stubs))]
    allowlist = tmp_path / "allowlist"
    allowlist.write_text("\n".join(allowed) + "\n")
    command = [sys.executable, "-m", "mypy.stubtest", "libetrace", "--ignore-unused-allowlist"]
    done = subprocess.run(
        [*command, "--allowlist", str(allowlist)],
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "Success" in done.stdout
