# SPDX-License-Identifier: Apache-2.0
"""What is made of the packages and of a machine's output before and after it boots."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bare.step import Step
from install import machine, run


def judged(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *steps: Step) -> list[bool]:
    monkeypatch.setattr(run, "IN_MACHINE", steps)
    return run.judge("bookworm", said, tmp_path)


def test_each_step_is_judged_by_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "boot\n@begin 0\na\n@end 0 0 3\n@begin 1\n@end 1 0 4\n@begin 2\nb\n@end 2 0 9\n"
    steps = [Step("a", "", says=("^a$",)), Step("fails", "", status=1), Step("b", "", says=("c",))]
    assert judged(said, tmp_path, monkeypatch, *steps) == [True, False, False]
    assert (tmp_path / "machine-2.log").read_text() == "b\n"


def test_a_step_that_the_machine_did_not_come_to_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "@begin 0\n@end 0 0 3\n@begin 1\nit hangs"
    assert judged(said, tmp_path, monkeypatch, Step("a", ""), Step("b", "")) == [True, False]


def test_steps_run_as_their_users_and_report_their_status(tmp_path: Path) -> None:
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    machine.prepare(tmp_path, [Step("a", "echo $((6 * 7)); exit 3")])
    script = (tmp_path / "etc/machine/steps").read_text()
    body = "\n".join(line for line in script.splitlines() if line.startswith(("echo", "bash")))
    body = body.replace("/etc/machine", f"{tmp_path}/etc/machine")
    done = subprocess.run(["bash", "-c", body], capture_output=True, text=True, check=False)
    [(number, text, status, _seconds)] = run.ENDED.findall(done.stdout)
    assert (number, text, status) == ("0", "42\n", "3")


def test_a_rewritten_package_is_newer_and_lacks_a_dependency(
    tmp_path: Path,
) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: a\nVersion: 1-1\nArchitecture: all\nMaintainer: m <m@example.org>\n"
        "Depends: c, b (= 1-1), d\nDescription: d\n"
    )
    subprocess.run(["dpkg-deb", "-b", tree, tmp_path / "a.deb"], check=True, capture_output=True)
    folder = tmp_path / "newer"
    folder.mkdir()
    run.rewrite(tmp_path / "a.deb", folder, "+newer", without="c")
    run.index(folder)
    listed = (folder / "Packages").read_text()
    assert "Version: 1-1+newer\n" in listed
    assert "Depends: b (= 1-1+newer), d\n" in listed
