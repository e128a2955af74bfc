# SPDX-License-Identifier: Apache-2.0
"""What build-aux/setup says to a user who may not install what is missing."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder of programs before all others; in it a user without rights and an apt-get."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write(folder / "id", '[ "$1" = -u ] && echo 1000 || echo somebody')
    write(folder / "apt-get", f"echo called >> {tmp_path}/apt-get-was")
    write(folder / "sudo", "echo 'sudo: a password is required' >&2; exit 1")
    return folder


def write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def setup(
    programs: Path, profiles: str = "build", compiler: str = "no-such-compiler"
) -> subprocess.CompletedProcess[str]:
    """Run profiles where the compiler is missing, or another one is taken."""
    return subprocess.run(
        [TOP / "build-aux" / "setup", profiles, programs / "venv"],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "CC": compiler},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_sudo_without_the_right_to_it_is_named_with_what_is_missing(
    programs: Path, tmp_path: Path
) -> None:
    done = setup(programs)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "sudo: a password is required\n"
        "setup: these packages are missing: gcc libc6-dev, and sudo does not let somebody install"
        " them\n"
        "  hint: as root: apt-get install gcc libc6-dev\n"
    )
    assert not (tmp_path / "apt-get-was").exists()


def test_lists_that_cannot_be_refreshed_are_the_networks_fault(programs: Path) -> None:
    write(programs / "sudo", '[ "$1 $2" = "env true" ]')
    done = setup(programs)
    assert (done.returncode, done.stdout) == (1, "setup: installing gcc libc6-dev\n")
    assert done.stderr == (
        "setup: the package lists could not be refreshed\n"
        "  hint: check the network and run this again\n"
    )


def test_what_dpkg_says_of_a_failure_is_shown(programs: Path) -> None:
    write(programs / "id", "echo 0")
    write(programs / "apt-get", '[ "$3" = update ] || { echo "dpkg: no space left"; exit 100; }')
    done = setup(programs)
    assert (done.returncode, done.stdout) == (1, "setup: installing gcc libc6-dev\n")
    assert done.stderr == (
        "dpkg: no space left\n"
        "setup: could not install gcc libc6-dev\n"
        "  hint: as root: apt-get install gcc libc6-dev\n"
    )


def test_all_that_packages_are_built_with_is_named_before_anything_is_built(
    programs: Path,
) -> None:
    write(programs / "dpkg-query", "exit 1")
    done = setup(programs, "deb+wheel", "gcc")
    assert done.returncode == 1
    [line] = re.findall(r"^  hint: as root: apt-get install (.*)$", done.stderr, re.MULTILINE)
    control = (TOP / "packaging/templates/debian/control.j2").read_text()
    [field] = re.findall(r"^Build-Depends:\n((?: .*\n)+)", control, re.MULTILINE)
    wanted = {
        re.sub(r"[{]{2}.*[}]{2}", r"\\d+", name).replace("-compat", "")
        for name in re.findall(r"^ ([^\n,(]*[^\n,( ])", field, re.MULTILINE)
        if not name.startswith("dh-sequence-")
    }
    named = line.split()
    wanted.add("build-essential")
    assert {name for name in wanted if not any(re.fullmatch(name, one) for one in named)} == set()
    assert len(named) == len(set(named))
    assert not (programs / "venv").exists()
