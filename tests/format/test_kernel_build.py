# SPDX-License-Identifier: Apache-2.0
"""The formatter compiles and links as part of a kernel module, without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCE = TOP / "tests" / "format" / "kernel"


def headers() -> Path:
    """Newest kernel headers of Debian's packages on this machine."""
    found = sorted(Path("/usr/src").glob("linux-headers-*-amd64"))
    assert found, "no kernel headers: apt-get install linux-headers-amd64"
    return found[-1]


def test_the_formatter_builds_as_a_module(tmp_path: Path) -> None:
    tree = tmp_path / "tests" / "format" / "kernel"
    shutil.copytree(SOURCE, tree)
    shutil.copytree(TOP / "native" / "format", tmp_path / "native" / "format")
    done = subprocess.run(
        ["make", "-C", headers(), f"M={tree}", f"ETRACE_TOP={TOP}", "modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # modpost would only warn of a symbol that the kernel does not have
    assert "undefined" not in done.stdout + done.stderr
    assert (tree / "etrace_format_check.ko").exists()
