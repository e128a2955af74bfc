# SPDX-License-Identifier: Apache-2.0
"""Makes calls of a program fail that do not fail on this machine: C functions put before libc's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def preloading(folder: Path, source: str) -> dict[str, str]:
    """Return an environment in which programs call the functions of `source` first."""
    library, text = folder / "preloaded.so", folder / "preloaded.c"
    text.write_text(source)
    done = subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, text],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n(apt-get install gcc libc6-dev)"
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "ASAN_OPTIONS": f"{sanitizer}:verify_asan_link_order=0".lstrip(":"),
    }
