# SPDX-License-Identifier: Apache-2.0
"""What is forgiven in a bare root: tests that pass alone, and faults of the machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bare import run
from bare.step import COUNTED, Step

TESTS = Step("make test", "test", says=(COUNTED.pattern,), again="again")
COUNTS = "==== 1 failed, 3 passed in 1.00s ====\n"


def second(step: Step, text: str, log: Path) -> str:
    """Return what runs once more after a step that printed this; empty: nothing."""
    log.write_text(text)
    found = step.second_try(log)
    return found.command if found else ""


def test_after_failed_tests_only_those_run_again(tmp_path: Path) -> None:
    assert second(TESTS, COUNTS, tmp_path / "log") == "again"
    assert second(TESTS, f"E: Failed to fetch\n{COUNTS}", tmp_path / "log") == "again"
    assert second(TESTS, "cc: error: no input files\n", tmp_path / "log") == ""


@pytest.mark.parametrize(
    "said",
    [
        "setup: the package lists could not be refreshed",
        "dpkg: error processing archive x.deb (--unpack): No space left on device",
        "E: Failed to fetch http://deb.debian.org/x.deb  Connection timed out",
        "setup: Python packages could not be installed",
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


class Roots:
    """Stands for roots: a command prints and ends as the next of its answers says."""

    def __init__(self, **answers: list[tuple[int, str]]) -> None:
        self._answers = answers
        self.ran: list[str] = []

    @contextmanager
    def fresh_root(self, suite: str) -> Iterator[Path]:
        yield self._folder

    def run(self, root: Path, user: object, command: str, output: object) -> int:
        self.ran.append(command)
        status, text = self._answers[command].pop(0)
        output.write(text.encode())  # type: ignore[attr-defined]
        if command == "again" and status == 0:
            flaky = root / "root/project/build/flaky.txt"
            flaky.parent.mkdir(parents=True)
            flaky.write_text("    assert 1 == 2\npassed when run alone: tests/x.py::y\n")
        return status

    def install(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._folder = folder / "root"
        (folder / "build").mkdir()
        patch.setattr(run, "PLANS", (run.Plan("p", (TESTS, Step("demo", "demo"))),))
        for name, value in {
            "LOGS": folder / "build", "TOP": folder, "ROOTS": folder, "ROOT_BYTES": 1,
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
        "    assert 1 == 2\npassed when run alone: tests/x.py::y\n2 passed, 0 failed\n"
    )
    assert "passed when run alone: tests/x.py::y" in (tmp_path / "build/flaky.txt").read_text()


def test_the_base_is_made_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = Roots(test=[(0, COUNTS)], demo=[(0, "")])
    roots.install(monkeypatch, tmp_path)
    failures = [subprocess.CalledProcessError(1, "mmdebstrap")]

    def base(suite: str) -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(run, "base", base)
    assert run.main(["bookworm"]) == 0
    said = capsys.readouterr().out
    assert "passed when run alone: the base of bookworm, once more after: Command" in said
    failures[:] = [subprocess.CalledProcessError(1, "mmdebstrap")] * 2
    with pytest.raises(subprocess.CalledProcessError):
        run.main(["bookworm"])


def test_what_fails_again_ends_the_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    roots = Roots(test=[(2, COUNTS)], again=[(1, COUNTS)])
    assert main(roots, monkeypatch, tmp_path) == 1
    assert roots.ran == ["test", "again"]
    assert not (tmp_path / "build/flaky.txt").exists()


def test_a_fault_of_the_machine_is_named_too_and_tried_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = (2, "E: Failed to fetch x\n")
    roots = Roots(test=[(0, COUNTS)], demo=[broken, (0, "")])
    assert main(roots, monkeypatch, tmp_path) == 0
    assert capsys.readouterr().out.endswith(
        "passed when run alone: demo, once more after a fault of the machine\n2 passed, 0 failed\n"
    )
    (tmp_path / "twice").mkdir()
    roots = Roots(test=[(0, COUNTS)], demo=[broken, broken])
    assert main(roots, monkeypatch, tmp_path / "twice") == 1
    assert roots.ran == ["test", "demo", "demo"]
