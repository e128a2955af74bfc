# SPDX-License-Identifier: Apache-2.0
"""What failed in a run of pytest runs once more; what passes then is forgiven and named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from runs import again

TESTS = Path(__file__).resolve().parents[1]
#: passes from its second run on
ONCE = """
from pathlib import Path

def is_second():
    first = not Path("ran").exists()
    Path("ran").touch()
    return not first
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory outside of this project, with its own settings of pytest."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p xdist.plugin -p runs.record -p no:cacheprovider\n"
    )
    (tmp_path / "once.py").write_text(ONCE)
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}:{tmp_path}")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(test: str, *words: str) -> int:
    """Write a file of tests and run it with a record; return pytest's status."""
    Path("test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "--run-record=r/tests.json", *words]
    return subprocess.run(command, check=False, capture_output=True).returncode


@pytest.mark.parametrize("words", [(), ("-n2",)], ids=["one process", "workers"])
def test_what_passes_alone_is_forgiven_and_named(
    place: Path, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    test = """
import once, pytest
@pytest.mark.parametrize("x", ["a-b[c] d::e"])
def test_seldom(x):
    assert once.is_second(), "the first time"
def test_fine():
    pass
"""
    assert run(test, *words) == 1
    assert again.main(["r/tests.json"]) == 0
    said = capfd.readouterr().out
    forgiven = "passed when run alone: test_it.py::test_seldom[a-b[c] d::e]\n"
    assert "AssertionError: the first time" in said
    assert said.endswith(forgiven)
    text = (place / again.FLAKY).read_text()
    assert text.endswith(forgiven)
    assert len(text.splitlines()) <= 21
    ran = json.loads(Path("r/tests.again.json").read_text())["tests"]
    assert [nodeid for nodeid, *_ in ran] == ["test_it.py::test_seldom[a-b[c] d::e]"]


def test_what_fails_again_is_not_forgiven_and_the_rest_is_named(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = """
import once
def test_seldom():
    assert once.is_second()
def test_always():
    assert False
"""
    assert run(test) == 1
    assert again.main(["r/tests.json"]) == 1
    said = capfd.readouterr().out.splitlines()
    assert said[-2:] == [
        "passed when run alone: test_it.py::test_seldom",
        "failed again: test_it.py::test_always",
    ]


@pytest.mark.parametrize(
    "ends",
    ["import os; os._exit(9)", "import pytest; pytest.skip('no tool')"],
    ids=["a worker dies", "skipped the second time"],
)
def test_only_a_test_that_passes_is_forgiven(
    place: Path, ends: str, capfd: pytest.CaptureFixture[str]
) -> None:
    test = f"import once\ndef test_it():\n    assert not once.is_second()\n    {ends}\n"
    (place / "ran").touch()
    assert run(test, "-n2") == 1
    (place / "ran").unlink()
    assert again.main(["r/tests.json"]) == 1
    assert "failed again: test_it.py::test_it" in capfd.readouterr().out


def test_a_worker_that_died_is_forgiven_by_its_test(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = "import once, os\ndef test_it():\n    once.is_second() or os._exit(9)\n"
    assert run(test, "-n2") == 1
    assert again.main(["r/tests.json"]) == 0
    assert "passed when run alone: test_it.py::test_it" in capfd.readouterr().out


def test_a_file_that_could_not_be_read_runs_again_as_a_whole(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = "import once\nassert once.is_second()\ndef test_it():\n    pass\n"
    assert run(test, "--continue-on-collection-errors") == 1
    assert again.main(["r/tests.json"]) == 0
    assert "passed when run alone: test_it.py\n" in capfd.readouterr().out


def test_tests_see_the_variables_of_the_first_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = """
import once, os
def test_it():
    assert once.is_second() and os.environ["ETRACE_CAT"] == "/sanitized"
"""
    monkeypatch.setenv("ETRACE_CAT", "/sanitized")
    assert run(test) == 1
    monkeypatch.delenv("ETRACE_CAT")
    assert again.main(["r/tests.json"]) == 0


def test_a_file_runs_again_when_a_teardown_failed(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = """
import pytest
left = []
@pytest.fixture(scope="module", autouse=True)
def nothing_is_left():
    yield
    assert left == []
def test_leaves():
    left.append(1)
def test_last():
    pass
"""
    assert run(test) == 1
    assert again.main(["r/tests.json"]) == 1
    assert "failed again: test_it.py::test_last" in capfd.readouterr().out


def test_what_ran_first_was_not_in_this_directory(place: Path) -> None:
    test = "import once\ndef test_it():\n    assert once.is_second()\n    import only_here\n"
    (place / "only_here.py").touch()
    (place / "elsewhere").mkdir()
    (place / "once.py").rename(place / "elsewhere/once.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{TESTS}:{place}/elsewhere")
        Path("t").mkdir()
        Path("t/test_it.py").write_text(test)
        command = [sys.executable, "-P", "-m", "pytest", "-q", "--import-mode=importlib"]
        command += ["--run-record=r/tests.json", "t"]
        assert subprocess.run(command, check=False, capture_output=True).returncode == 1
    assert again.main(["r/tests.json"]) == 1


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (None, "there is no record of a run that got to its end"),
        ({"status": 3, "failed": {"a": []}}, "pytest ended with 3"),
        ({"status": 0, "failed": {}}, "no test failed"),
        ({"status": 1, "failed": {}}, "pytest ended with 1 and no test failed"),
        ({"status": 1, "failed": {"a": []}, "n_collected": 2}, "only 0 of 2 tests ran"),
    ],
    ids=["no record", "an internal error", "nothing failed", "no name", "tests left out"],
)
def test_nothing_else_is_forgiven(
    place: Path, record: dict[str, object] | None, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    good = {"status": 0, "failed": {}, "tests": [], "n_collected": 0}
    Path("good.json").write_text(json.dumps(good))
    if record:
        Path("r.json").write_text(json.dumps(good | record))
    assert again.main(["good.json", "r.json"]) == 1
    assert why in capfd.readouterr().err
    assert not again.FLAKY.exists()
