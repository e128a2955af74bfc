# SPDX-License-Identifier: Apache-2.0
"""The tree that DKMS gets builds without the rest of etrace and installs where modprobe looks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def headers() -> Path:
    """Newest kernel headers of Debian's packages on this machine."""
    found = sorted(Path("/usr/src").glob("linux-headers-*-amd64"))
    assert found, "no kernel headers: apt-get install linux-headers-amd64"
    return found[-1]


def make(tree: Path, *arguments: str) -> str:
    """Run make in `tree` against the headers; return what it printed."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    done = subprocess.run(
        ["make", "-C", tree, f"KDIR={headers()}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_self_contained_tree_builds_and_installs(tmp_path: Path) -> None:
    tree = tmp_path / "etrace-0.1.0"
    shutil.copytree(TOP / "kmod", tree, ignore=shutil.ignore_patterns("*.o", "*.ko", ".*.cmd"))
    shutil.copytree(TOP / "native" / "format", tree / "format")
    # modpost would only warn of a symbol that the kernel does not have
    assert "undefined" not in make(tree, "modules")
    make(tree, f"INSTALL_MOD_PATH={tmp_path}", "modules_install")
    modules = tmp_path / "lib" / "modules" / headers().name.removeprefix("linux-headers-")
    (installed,) = (modules / "updates").iterdir()  # compressed where the kernel's others are
    assert installed.name in {"etrace.ko", "etrace.ko.xz"}
    assert f"updates/{installed.name}:" in (modules / "modules.dep").read_text()
