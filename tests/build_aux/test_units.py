# SPDX-License-Identifier: Apache-2.0
"""The units of systemd: how much the service could do if it were broken into."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from backends import need_tool

from etrace.render import render

TOP = Path(__file__).resolve().parents[2]
TEMPLATES = TOP / "packaging/templates/systemd"
WORST = 2.0


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The service's unit, beside its socket."""
    for name in ("etraced.service", "etraced.socket"):
        (tmp_path / name).write_text(render(TEMPLATES / f"{name}.j2", {}))
    return tmp_path / "etraced.service"


def values(unit: Path, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)


def test_the_unit_is_hardened(unit: Path) -> None:
    need_tool("systemd-analyze", "systemd")
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found = re.search(r"exposure level for etraced.service: ([\d.]+)", said)
    assert found
    assert float(found[1]) <= WORST, said


def test_the_service_cannot_load_modules(unit: Path) -> None:
    (kept,) = values(unit, "CapabilityBoundingSet")
    assert kept.split() == ["CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID"]
    assert values(unit, "ProtectKernelModules") == ["yes"]


def test_the_units_are_valid(unit: Path) -> None:
    need_tool("systemd-analyze", "systemd")
    text = unit.read_text().replace("/usr/bin/etraced", "/bin/true")
    unit.write_text(text.replace("/sbin/modprobe", "/bin/true"))
    said = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit, unit.with_name("etraced.socket")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line for line in said.stderr.splitlines() if "etraced" in line] == []
