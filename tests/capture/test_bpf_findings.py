# SPDX-License-Identifier: Apache-2.0
"""What `etrace doctor` says of the conditions of the BPF programs, each with its cure."""

from __future__ import annotations

import dataclasses
import resource
from pathlib import Path

import pytest

from etrace.capture.bpf import backend, findings
from etrace.capture.bpf.findings import Kernel
from etrace.capture.kmod.findings import Check

ALL = (1 << 41) - 1


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel where everything holds, for a program in a directory of the test."""
    monkeypatch.setattr(backend, "libexec", lambda name: str(tmp_path / name))
    monkeypatch.setattr(findings, "libexec", lambda name: str(tmp_path / name))
    monkeypatch.setattr(backend, "held", lambda: ALL)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "etrace-bpf").touch()
    (tmp_path / "etrace-bpf").chmod(0o755)
    (tmp_path / "vmlinux").touch()
    (tmp_path / "lockdown").write_text("none [integrity] confidentiality\n")
    (tmp_path / "uid_map").write_text("         0          0 4294967295\n")
    return Kernel(
        release="6.1.0-1-amd64", types=tmp_path / "vmlinux", sysfs=tmp_path,
        lockdown=tmp_path / "lockdown", uid_map=tmp_path / "uid_map", memlock_bytes=8 << 20,
    )  # fmt: skip


def check(kernel: Kernel, name: str) -> Check:
    return next(each for each in findings.examine(kernel) if each.name == name)


def test_where_everything_holds_there_is_nothing_to_do(kernel: Kernel) -> None:
    found = list(findings.examine(kernel))
    assert [each.name for each in found] == [
        "program", "rights", "kernel", "type information", "lockdown", "locked memory",
    ]  # fmt: skip
    assert all(each.holds and not each.hint for each in found), found


def test_a_missing_program_is_named_with_what_it_is_built_with(
    kernel: Kernel, tmp_path: Path
) -> None:
    (tmp_path / "etrace-bpf").unlink()
    found = check(kernel, "program")
    assert found.value == f"{tmp_path}/etrace-bpf was not built"
    assert "clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev" in found.hint


def test_missing_capabilities_are_named(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "held", lambda: 1 << 39)
    found = check(kernel, "rights")
    assert found.value == "missing: CAP_PERFMON"
    assert "sudo etrace run" in found.hint
    assert "setcap cap_bpf,cap_perfmon+ep" in found.hint


def test_capabilities_of_a_user_namespace_do_not_count(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "uid_map").write_text("0 1000 1\n")
    found = check(kernel, "rights")
    assert (found.holds, found.hint) == (False, "run it outside of the container")


@pytest.mark.parametrize(
    ("release", "holds"),
    [("5.10.0", True), ("5.9.16", False), ("4.19.0-27-amd64", False), ("7.2-rc1", True)],
)
def test_an_old_kernel_is_named(kernel: Kernel, release: str, holds: bool) -> None:
    found = check(dataclasses.replace(kernel, release=release), "kernel")
    assert (found.value, found.holds) == (release, holds)
    assert holds or found.hint.startswith("boot Linux 5.10 or newer, or trace without BPF")


def test_a_kernel_without_type_information_is_named(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").unlink()
    found = check(kernel, "type information")
    assert "CONFIG_DEBUG_INFO_BTF" in found.value
    assert found.hint.startswith("boot a kernel that has it")
    unmounted = dataclasses.replace(kernel, sysfs=tmp_path / "none")
    assert check(unmounted, "type information").hint == "sudo mount -t sysfs sysfs /sys"


def test_only_the_stronger_lockdown_refuses_programs(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "lockdown").write_text("none integrity [confidentiality]\n")
    found = check(kernel, "lockdown")
    assert (found.holds, found.value) == (False, "confidentiality: no program may read")
    assert found.hint.startswith("boot with lockdown=integrity")


def test_locked_memory_is_limited_for_users_of_old_kernels(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = dataclasses.replace(kernel, release="5.10.0-30-amd64")
    found = check(old, "locked memory")
    assert (found.value, found.hint) == (
        "limited to 8388608 bytes", "sudo prlimit --pid $$ --memlock=unlimited",
    )  # fmt: skip
    free = dataclasses.replace(old, memlock_bytes=resource.RLIM_INFINITY)
    assert check(free, "locked memory").holds
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert check(old, "locked memory").holds
