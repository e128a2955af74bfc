# SPDX-License-Identifier: Apache-2.0
"""What `etrace doctor` says of machines that do and do not allow the kernel module."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import pytest
from fake_kernel import make_machine

from etrace.capture.kmod import findings
from etrace.capture.kmod.findings import Check, Kernel
from etrace.capture.kmod.system import presence

OPTIONS = findings.NEEDED_CONFIG + findings.NEEDED_BY_X86
ALL_CONFIG = "".join(f"CONFIG_{option}=y\n" for option in OPTIONS)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """A kernel that allows everything."""
    (tmp_path / "efivars").mkdir()
    files = {
        "lockdown": "[none] integrity confidentiality\n",
        "sig_enforce": "N\n",
        "config": ALL_CONFIG,
        "status": "Name:\tx\nCapEff:\t000001ffffffffff\n",
        "uid_map": "         0          0 4294967295\n",
        "ftrace": "1\n",
        "kprobes": "1\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    places = {name: tmp_path / name for name in files}
    return Kernel(
        **places,
        efi_variables=tmp_path / "efivars",
        packed_config=tmp_path / "config.gz",
        machine="x86_64",
    )


def failing(kernel: Kernel, tmp_path: Path) -> list[Check]:
    machine = make_machine(tmp_path / "machine")
    found = [check for check in findings.examine(machine.host, kernel) if not check.holds]
    assert all(check.hint for check in found)
    return found


def test_nothing_is_in_the_way_of_a_good_machine(kernel: Kernel, tmp_path: Path) -> None:
    assert failing(kernel, tmp_path) == []


@pytest.mark.parametrize(
    ("place", "content", "value"),
    [
        ("lockdown", "none [integrity] confidentiality", "integrity"),
        ("lockdown", "none integrity [confidentiality]", "confidentiality"),
        ("sig_enforce", "Y\n", "only signed modules are accepted"),
        *(
            ("config", ALL_CONFIG.replace(f"CONFIG_{option}=y\n", ""), f"missing: CONFIG_{option}")
            for option in OPTIONS
        ),
        ("status", "CapEff:\t000001fffffeffff\n", "missing: CAP_SYS_MODULE"),
        ("uid_map", "0 100000 65536\n", "root of a user namespace only"),
    ],
)
def test_each_obstacle_is_named(
    kernel: Kernel, tmp_path: Path, place: str, content: str, value: str
) -> None:
    (tmp_path / place).write_text(content)
    (check,) = failing(kernel, tmp_path)
    assert check.value == value


@pytest.mark.parametrize("place", ["ftrace", "kprobes"])
def test_probes_that_are_switched_off_are_named(kernel: Kernel, tmp_path: Path, place: str) -> None:
    (tmp_path / place).write_text("0\n")
    (check,) = failing(kernel, tmp_path)
    assert check.name == "kprobes"
    assert check.value.startswith(f"off: {tmp_path / place} is 0; ")
    assert check.hint.startswith("switch it on: ")


def test_a_switch_that_cannot_be_read_is_not_an_obstacle(kernel: Kernel, tmp_path: Path) -> None:
    kernel.kprobes.unlink()
    assert failing(kernel, tmp_path) == []
    assert findings.kprobes(kernel).value == f"unknown: {kernel.kprobes} cannot be read"


def test_another_machine_probes_without_ftrace(kernel: Kernel) -> None:
    kernel.config.write_text(ALL_CONFIG.replace("CONFIG_KPROBES_ON_FTRACE=y\n", ""))
    kernel.ftrace.write_text("0\n")
    for check in (findings.configuration, findings.kprobes):
        assert check(dataclasses.replace(kernel, machine="aarch64")).holds
        assert not check(kernel).holds


def test_secure_boot_is_read_from_the_firmware(kernel: Kernel, tmp_path: Path) -> None:
    variable = tmp_path / "efivars" / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    variable.write_bytes(b"\x06\0\0\0\0")
    assert failing(kernel, tmp_path) == []
    variable.write_bytes(b"\x06\0\0\0\1")
    assert [check.name for check in failing(kernel, tmp_path / "again")] == ["secure boot"]


def test_a_packed_configuration_is_read(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "config").unlink()
    assert findings.configuration(kernel).value.startswith("unknown")
    (tmp_path / "config.gz").write_bytes(gzip.compress(b"CONFIG_MODULES=y\n"))
    assert not findings.configuration(kernel).holds


def test_a_module_for_another_kernel_is_named(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = make_machine(tmp_path / "machine")
    machine.modules.available = False
    file = tmp_path / "etrace.ko"
    file.write_bytes(b"vermagic=4.19.0 SMP ")
    monkeypatch.setattr(presence, "candidates", lambda: iter([file]))
    check = findings.module_file(machine.host, kernel)
    assert check.value == f"{file} is for kernel 4.19.0"
    file.unlink()
    assert presence.release() in findings.module_file(machine.host, kernel).value


def test_a_kernel_that_takes_no_modules_gets_no_advice_to_build_one(
    kernel: Kernel, tmp_path: Path
) -> None:
    kernel.config.write_text(ALL_CONFIG.replace("CONFIG_MODULES=y", ""))
    machine = make_machine(tmp_path / "machine")
    machine.modules.available = False
    found = [check for check in findings.examine(machine.host, kernel) if not check.holds]
    assert [(check.name, check.hint) for check in found] == [
        ("module", ""),
        ("kernel options", findings.CONFIG_HINT),
    ]
