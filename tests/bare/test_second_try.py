# SPDX-License-Identifier: Apache-2.0
"""What is forgiven in a bare root: tests that pass alone, and faults of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bare import run
from bare.step import COUNTED, Step

TESTS = Step("make test", "test", says=(COUNTED.pattern,), again="again")
COUNTED_WELL = "==== 4 passed in 1.00s ====\n"
COUNTS = "==== 1 failed, 3 passed in 1.00s ====\n"


def second(step: Step, text: str, log: Path, *, has_failed_tests: bool = False) -> str:
    """Return what runs once more after a step that printed this; empty: nothing."""
    log.write_text(text)
    found = step.second_try(log, has_failed_tests=has_failed_tests)
    return found.command if found else ""


def test_after_failed_tests_only_those_run_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert second(TESTS, COUNTS, log, has_failed_tests=True) == "again"
    assert second(TESTS, f"E: Failed to fetch\n{COUNTS}", log, has_failed_tests=True) == "again"
    assert second(TESTS, COUNTS, log) == ""  # it failed outside its tests


@pytest.mark.parametrize(
    "said",
    [
        "cc: error: no input files",
        "setup: could not install x",
        "dpkg: error processing package etrace-dkms (--configure)",
        "npm error code E404",
        "serve: Connection refused",
    ],
)
def test_our_own_faults_are_not_the_machines(said: str, tmp_path: Path) -> None:
    assert second(Step("make demo", "demo"), said, tmp_path / "log") == ""


@pytest.mark.parametrize(
    "said",
    [
        "E: The repository 'http://x' ... Temporary failure resolving 'x'",
        "dpkg: error processing archive x.deb (--unpack): No space left on device",
        "E: Failed to fetch http://deb.debian.org/x.deb  Connection timed out",
        "HTTPSConnectionPool(host='x', port=443): Read timed out.",
        "npm error code ECONNRESET",
        "cc1: fatal error: error writing to /tmp/x.s: No space left on device",
    ],
)
def test_a_step_runs_again_when_its_end_shows_a_fault_of_the_machine(
    said: str, tmp_path: Path
) -> None:
    step = Step("make demo", "demo")
    assert second(step, f"{said}\nmake: *** [Makefile:1: demo] Error 1\n", tmp_path / "log")
    assert second(TESTS, f"{said}\n", tmp_path / "log") == "test"
    assert second(step, said + "\n" + "built\n" * 60, tmp_path / "log") == ""


def test_roots_need_no_package_of_pypi() -> None:
    """The machine that makes the roots has Python and nothing else: no pytest."""
    command = [sys.executable, "-P", "-S", "-c", "import bare.run"]
    tests = Path(__file__).resolve().parents[1]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(tests)})


class Roots:
    """Stands for roots: a command prints and ends as the next of its answers says.

    Tests that fail leave a record, and `again` names what it forgives, as the real commands do.
    """

    def __init__(self, **answers: list[tuple[int, str]]) -> None:
        self._answers = answers
        self.ran: list[str] = []
        self.n_made = 0
        self.failures: list[Exception] = []  # of making a root

    @contextmanager
    def fresh_root(self, suite: str) -> Iterator[Path]:
        if self.failures:
            raise self.failures.pop()
        self.n_made += 1
        yield self._folder

    def run(self, root: Path, user: object, command: str, output: object) -> int:
        self.ran.append(command)
        status, text = self._answers[command].pop(0)
        output.write(text.encode())  # type: ignore[attr-defined]
        build = root / "root/project/build"
        (build / "test-runs").mkdir(parents=True, exist_ok=True)
        if text == COUNTS:
            (build / "test-runs/tests.json").write_text(json.dumps({"failed": {"x": {}}}))
        if command == "again":
            (build / "flaky.txt").write_text("    assert 1 == 2\npassed when run alone: x.py::y\n")
        return status

    def install(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._folder = folder / "root"
        (folder / "build/bare").mkdir(parents=True)
        patch.setattr(run, "PLANS", (run.Plan("p", (TESTS, Step("demo", "demo"))),))
        for name, value in {
            "LOGS": folder / "build/bare", "TOP": folder, "ROOTS": folder, "ROOT_BYTES": 1,
            "fresh_root": self.fresh_root, "run": self.run, "remove_left": lambda: None,
            "base": lambda suite: None, "clone": lambda root, user: None,
        }.items():  # fmt: skip
            patch.setattr(run, name, value)
        patch.setattr("os.geteuid", lambda: 0)


def main(roots: Roots, patch: pytest.MonkeyPatch, folder: Path) -> int:
    """Run a plan of tests and a demo in such roots."""
    roots.install(patch, folder)
    return run.main(["bookworm"])


def test_what_passes_alone_is_named_before_the_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = Roots(test=[(2, COUNTS)], again=[(0, "== 1 passed in 1.00s ==\n")], demo=[(0, "")])
    assert main(roots, monkeypatch, tmp_path) == 0
    assert roots.ran == ["test", "again", "demo"]
    assert capsys.readouterr().out.endswith(
        "    assert 1 == 2\npassed when run alone: x.py::y\n2 passed, 0 failed\n"
    )
    assert "passed when run alone: x.py::y" in (tmp_path / "build/flaky.txt").read_text()


def test_what_fails_again_ends_the_plan_and_the_rest_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = Roots(test=[(2, COUNTS)], again=[(1, COUNTS)])
    assert main(roots, monkeypatch, tmp_path) == 1
    assert roots.ran == ["test", "again"]
    assert capsys.readouterr().out.endswith("passed when run alone: x.py::y\n0 passed, 2 failed\n")


def test_a_fault_of_the_machine_is_named_too_and_tried_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = (2, "E: Failed to fetch x\n")
    roots = Roots(test=[(0, COUNTED_WELL)], demo=[broken, (0, "")])
    assert main(roots, monkeypatch, tmp_path) == 0
    assert capsys.readouterr().out.endswith(
        "    E: Failed to fetch x\npassed when run alone: bookworm, p: demo\n2 passed, 0 failed\n"
    )
    (tmp_path / "twice").mkdir()
    roots = Roots(test=[(0, COUNTED_WELL)], demo=[broken, broken])
    assert main(roots, monkeypatch, tmp_path / "twice") == 1
    assert roots.ran == ["test", "demo", "demo"]


def test_after_a_fault_of_the_machine_failed_tests_run_again_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roots = Roots(
        test=[(2, "E: Failed to fetch x\n"), (2, COUNTS)],
        again=[(0, COUNTED_WELL)], demo=[(0, "")],
    )  # fmt: skip
    assert main(roots, monkeypatch, tmp_path) == 0
    assert roots.ran == ["test", "test", "again", "demo"]


def test_a_root_or_base_that_cannot_be_made_is_made_again_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = Roots(test=[(0, COUNTED_WELL)], demo=[(0, "")])
    roots.install(monkeypatch, tmp_path)
    roots.failures = [OSError("No space left on device")]
    bases: list[Exception] = [subprocess.CalledProcessError(1, "mmdebstrap")]

    def base(suite: str) -> None:
        if bases:
            raise bases.pop()

    monkeypatch.setattr(run, "base", base)
    assert run.main(["bookworm"]) == 0
    said = capsys.readouterr().out
    assert "passed when run alone: the base of bookworm\n" in said
    assert "passed when run alone: bookworm, p: its root\n2 passed, 0 failed\n" in said


def test_a_plan_without_a_root_fails_and_the_counts_are_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = Roots()
    roots.install(monkeypatch, tmp_path)
    roots.failures = [OSError("No space left on device")] * 2
    assert run.main(["bookworm"]) == 1
    assert capsys.readouterr().out.endswith("0 passed, 2 failed\n")
