# SPDX-License-Identifier: Apache-2.0
"""What `etrace-module` of etrace-dkms says, with programs that play dkms and mokutil."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import packages
import pytest

from etrace.render import render

TOP = Path(__file__).resolve().parents[2]
RELEASE = "6.1.0-9-amd64"
ENROLLED = "SKIP: {key} is already enrolled"
UNKNOWN = "{key} is not enrolled"


class Machine:
    """A folder that the script takes for the machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = root / "modules"
        self.dkms = root / "dkms"
        self.programs = root / "bin"
        for folder in (self.modules / RELEASE / "build", self.dkms, self.programs):
            folder.mkdir(parents=True)
        (self.modules / RELEASE / "modules.dep").touch()
        self.program("id", "echo 0")
        self.program("dkms", "exit 0")

    def program(self, name: str, body: str) -> None:
        """Put a shell script where the script finds it first."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def with_headers(self) -> Machine:
        """Give the kernel its headers."""
        (self.modules / RELEASE / "build/Makefile").touch()
        return self

    def with_secure_boot(self, says: str) -> Machine:
        """Switch Secure Boot on; mokutil says this about the key."""
        key = self.dkms / "mok.pub"
        key.touch()
        self.program(
            "mokutil",
            "case $1 in --sb-state) echo SecureBoot enabled;; "
            f"*) echo '{says.format(key=key)}';; esac",
        )
        return self

    def build(self) -> tuple[int, str]:
        """Run `etrace-module build`; return its status and what it said."""
        done = self.run("build")
        return done.returncode, done.stderr

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `etrace-module` with these words."""
        values = packages.manifest("bookworm")
        text = render(packages.TEMPLATES / "dkms/etrace-module.j2", values)
        script = self.root / "etrace-module"
        places = {"/lib/modules": self.modules, "/var/lib/dkms": self.dkms}
        for place, there in places.items():
            assert place in text
            text = text.replace(place, str(there))
        script.write_text(text)
        return subprocess.run(
            ["sh", str(script), *words], capture_output=True, text=True, check=False,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "TMPDIR": str(self.root)},
        )  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_kernel_without_headers_is_left_out(machine: Machine) -> None:
    assert machine.build() == (
        1,
        (
            f"etrace-module: {RELEASE}: no headers; "
            f"the module is built when linux-headers-{RELEASE} "
            "is installed; etrace traces by ptrace there until then\n"
        ),
    )


def test_a_kernel_with_headers_gets_the_module(machine: Machine) -> None:
    machine.program("dkms", f"echo $* >{machine.root}/asked")
    assert machine.with_headers().build() == (
        0, f"etrace-module: {RELEASE}: built and installed\n",
    )  # fmt: skip
    assert (machine.root / "asked").read_text().endswith(f" -k {RELEASE}\n")


@pytest.mark.parametrize("reason", ["unknown compiler option", "Read-only file system"])
def test_a_build_that_fails_is_reported_with_its_reason_and_log(
    machine: Machine, reason: str
) -> None:
    machine.program("dkms", f"echo 'error: {reason}'; exit 10")
    status, said = machine.with_headers().build()
    assert status == 1
    first, second = said.splitlines()
    assert first == f"error: {reason}"
    assert second.startswith(f"etrace-module: {RELEASE}: not built; etrace traces by ptrace there.")
    [log] = machine.root.glob("tmp.*")
    assert str(log) in second
    assert reason in log.read_text()


def test_secure_boot_wants_a_key_that_it_knows(machine: Machine) -> None:
    status, said = machine.with_headers().with_secure_boot(UNKNOWN).build()
    assert status == 0
    assert said.splitlines()[1:] == [
        (
            "etrace-module: Secure Boot is on and does not know the key of this module. "
            "Enroll it, then reboot:"
        ),
        f"etrace-module:   sudo mokutil --import {machine.dkms}/mok.pub",
    ]


def test_an_enrolled_key_is_not_talked_about(machine: Machine) -> None:
    said = machine.with_headers().with_secure_boot(ENROLLED).build()
    assert said == (0, f"etrace-module: {RELEASE}: built and installed\n")


def test_secure_boot_without_any_key_says_how_to_get_one(machine: Machine) -> None:
    machine.with_headers().with_secure_boot(UNKNOWN)
    (machine.dkms / "mok.pub").unlink()
    assert machine.build()[1].splitlines()[-1] == (
        "etrace-module:   sudo apt-get install openssl && sudo etrace-module build"
    )


def test_a_machine_without_kernels_learns_when_the_module_comes(machine: Machine) -> None:
    shutil.rmtree(machine.modules / RELEASE)
    status, said = machine.build()
    assert (status, "no kernel is installed here" in said) == (1, True)


@pytest.mark.parametrize(
    ("has_headers", "is_installed", "state"),
    [
        (False, False, f"no headers; install linux-headers-{RELEASE}, and the module is built"),
        (True, False, f"not built; sudo etrace-module build {RELEASE}"),
        (True, True, "installed"),
    ],
)
def test_the_status_of_each_kernel_is_reported(
    machine: Machine, has_headers: bool, is_installed: bool, state: str
) -> None:
    if has_headers:
        machine.with_headers()
    machine.program("uname", f"echo {RELEASE}")
    if is_installed:
        machine.program(
            "dkms", f'[ "$1" = status ] && echo "etrace/1, {RELEASE}, x86_64: installed"'
        )
    done = machine.run("status")
    assert (done.returncode, done.stdout) == (not is_installed, f"{RELEASE} (running): {state}\n")
