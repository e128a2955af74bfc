# SPDX-License-Identifier: Apache-2.0
"""build-aux/setup and build-aux/features: what a build finds is settled before it, and noticed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
#: a compiler without zstd.h and libbpf.h, and an apt-get that writes down what it was asked for
CC = """\
#!/bin/sh
read line
case $line in *zstd.h* | *libbpf.h*) exit 1 ;; esac
printf '%s\\n' "$line" | exec cc "$@"
"""
APT = """\
#!/bin/sh
echo "$@" >>"$LOG"
exit "$APT_STATUS"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A virtual environment that is ready, and a machine without libzstd-dev and libbpf-dev."""
    key = hashlib.sha256((TOP / "pyproject.toml").read_bytes()).hexdigest()[:16]
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / f".setup-build-{key}").touch()
    (tmp_path / "bin").mkdir()
    for name, text in (("no-zstd-cc", CC), ("apt-get", APT)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    plugin = subprocess.run(
        ["cc", "-print-file-name=plugin"], capture_output=True, text=True, check=True
    )
    (tmp_path / "plugin").write_text(plugin.stdout)
    return tmp_path


def run(machine: Path, *command: str, apt_status: int = 0) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PATH": f"{machine}/bin:{os.environ['PATH']}",
        "LOG": str(machine / "log"),
        "APT_STATUS": str(apt_status),
        "CC": str(machine / "bin" / "no-zstd-cc"),
    }
    return subprocess.run(command, env=environment, cwd=TOP, capture_output=True, text=True,
                          check=False)  # fmt: skip


def setup(machine: Path, apt_status: int = 0) -> subprocess.CompletedProcess[str]:
    words = ("build-aux/setup", "build", str(machine / "venv"))
    return run(machine, *words, apt_status=apt_status)


@pytest.mark.root
def test_what_a_feature_needs_is_installed_before_the_build(machine: Path) -> None:
    done = setup(machine)
    assert done.returncode == 0, done.stderr
    asked = (machine / "log").read_text().splitlines()
    for package in ("libzstd-dev", "libbpf-dev"):
        assert f"-q -y install --no-install-recommends {package}" in asked
        assert package in done.stdout


@pytest.mark.root
def test_a_build_goes_on_without_what_cannot_be_installed_and_tries_once(machine: Path) -> None:
    assert setup(machine, apt_status=100).returncode == 0
    n_asked = len((machine / "log").read_text().splitlines())
    assert setup(machine, apt_status=100).returncode == 0
    assert len((machine / "log").read_text().splitlines()) == n_asked


def test_a_library_that_comes_changes_what_make_looks_at(machine: Path) -> None:
    noted = machine / "venv" / ".features"
    words = ("build-aux/features", str(machine / "venv"), str(machine / "build"))
    run(machine, *words)
    assert noted.read_text().startswith("zstd: no\n")
    assert "\nbpf: no\n" in noted.read_text()
    before = noted.stat().st_mtime_ns
    run(machine, *words)
    assert noted.stat().st_mtime_ns == before
    for tool in ("no-zstd-cc", "clang", "llvm-strip", "bpftool", "pkg-config"):
        shutil.copy2("/bin/true", machine / "bin" / tool)
    run(machine, *words)
    assert noted.read_text().startswith("zstd: yes\n")
    assert "\nbpf: yes\n" in noted.read_text()
