# SPDX-License-Identifier: Apache-2.0
"""The tree that DKMS gets builds without the rest of etrace and installs where modprobe looks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


def headers() -> Path:
    """Newest kernel headers of Debian's packages on this machine."""
    found = sorted(Path("/usr/src").glob("linux-headers-*-amd64"))
    assert found, "no kernel headers: apt-get install linux-headers-amd64"
    return found[-1]


def copy(tree: Path) -> Path:
    """Lay out what DKMS gets."""
    shutil.copytree(TOP / "kmod", tree, ignore=shutil.ignore_patterns("*.o", "*.ko", ".*.cmd"))
    shutil.copytree(TOP / "native" / "format", tree / "format")
    return tree


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in `tree` against the headers."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return subprocess.run(
        ["make", "-C", tree, f"KDIR={headers()}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )


def make(tree: Path, *arguments: str) -> str:
    """Run make in `tree`; return what it printed."""
    done = run(tree, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_self_contained_tree_builds_and_installs(tmp_path: Path) -> None:
    tree = copy(tmp_path / "etrace-0.1.0")
    # modpost would only warn of a symbol that the kernel does not have
    assert "undefined" not in make(tree, "ETRACE_STRICT=y", "modules")
    make(tree, f"INSTALL_MOD_PATH={tmp_path}", "modules_install")
    modules = tmp_path / "lib" / "modules" / headers().name.removeprefix("linux-headers-")
    (installed,) = (modules / "updates").iterdir()  # compressed where the kernel's others are
    assert installed.name in {"etrace.ko", "etrace.ko.xz"}
    assert f"updates/{installed.name}:" in (modules / "modules.dep").read_text()


@pytest.mark.long("two more builds of the module, for a switch of its makefile")
def test_a_warning_of_the_next_compiler_stops_no_users_build(tmp_path: Path) -> None:
    tree = copy(tmp_path / "etrace-0.1.0")
    with (tree / "src/state.c").open("a") as file:
        file.write("\nstatic void never_called(void)\n{\n}\n")
    assert "never_called" in make(tree, "modules")
    strict = run(tree, "ETRACE_STRICT=y", "modules")
    assert strict.returncode != 0
    assert "Werror=unused-function" in strict.stderr
