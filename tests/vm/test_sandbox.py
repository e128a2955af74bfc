# SPDX-License-Identifier: Apache-2.0
"""The sandbox on the kernels of the guests: Debian 12's has version 2 of Landlock, 5.10 none."""

from __future__ import annotations

import pytest
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400), pytest.mark.phase("sandbox")]
#: kernels without Landlock, on which nothing runs
WITHOUT = "5.10"
RUN = {"run_true", "run_shell", "make_code"}
WHO = (
    "root", "root-plain", "root-executes", "user", "user-plain", "user-executes",
    "user-plain-executes",
)  # fmt: skip


@pytest.mark.parametrize("who", WHO)
def test_no_call_changes_or_reaches_anything(guest: Guest, who: str) -> None:
    guest.phase("sandbox")
    folder = guest.work / "sandbox"
    said = (folder / f"{who}.said").read_text()
    if guest.kernel.name.startswith(WITHOUT):
        report = (folder / f"{who}.report").read_text()
        assert (said, report.partition(" (")[0]) == ("", "missing Landlock")
        return
    assert (folder / f"{who}.report").read_text() == "denied /dev/ptmx\nexit 0\n", said
    allowed = {"end", *(RUN if "executes" in who else ())}
    if who.startswith("root"):
        allowed.add("map_own_code")  # the file is root's
    assert set(said.split()) <= allowed
    assert "end" in said
    assert (folder / f"{who}.before").read_text() == (folder / f"{who}.after").read_text()


def test_no_way_runs_or_changes_anything(guest: Guest) -> None:
    guest.phase("sandbox")
    text = (guest.work / "sandbox/ways").read_text()
    last = text.splitlines()[-1].split()
    assert int(last[0]) >= 40, text
    assert last[2] == "0", text
    expected = "no sandbox for it here" if guest.kernel.name.startswith(WITHOUT) else "targets are"
    assert expected in text
