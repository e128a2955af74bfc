# SPDX-License-Identifier: Apache-2.0
"""Tables of where the time of a run went."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runs import minutes

TESTS = Path(__file__).resolve().parents[1]


def test_times_are_those_of_the_tests_and_of_the_fixtures_that_they_had_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist.plugin -p runs.record\n")
    (tmp_path / "test_a.py").write_text("""
import pytest
@pytest.fixture(scope="session")
def tree(tmp_path_factory): pass
@pytest.fixture
def build(tree): pass
def test_one(build): pass
def test_two(build): pass
""")
    command = [sys.executable, "-m", "pytest", "-n1", "--run-record=r.json"]
    env = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    record = json.loads((tmp_path / "r.json").read_text())
    assert [row[:3] for row in record["tests"]] == [
        ["test_a.py::test_one", "passed", "gw0"], ["test_a.py::test_two", "passed", "gw0"],
    ]  # fmt: skip
    made = [row[:3] for row in record["fixtures"] if row[0] in {"tree", "build"}]
    assert made == [["tree", "session", "gw0"], *[["build", "function", "gw0"]] * 2]
    assert minutes.main([str(tmp_path / "r.json")]) == 0
    assert "| tests | 2 |" in capsys.readouterr().out


def test_seconds_are_summed_by_folder_and_by_fixture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({
        "began": 10.0, "ended": 70.0, "status": 0, "failed": {}, "environment": {},
        "tests": [
            ["tests/query/test_a.py::one", "passed", "gw0", 1.0, 2.0, 0.5],
            ["tests/query/rows/test_b.py::two", "passed", "gw1", 0.0, 4.0, 0.0],
            ["tests/vm/test_c.py::three[guest-6.1]", "passed", "gw1", 30.0, 1.0, 0.0],
        ],
        "fixtures": [["lua", "session", "gw0", 1.5], ["lua", "session", "gw1", 2.0],
                     ["tmp_path", "function", "gw0", 0.1]],
    }))  # fmt: skip
    (tmp_path / "steps.json").write_text(
        json.dumps([{"plan": "bookworm, demo-first", "step": "make demo", "seconds": 12}])
    )
    assert minutes.main([str(tmp_path / "run.json"), str(tmp_path / "steps.json")]) == 0
    said = capsys.readouterr().out
    assert "3 tests in 60 s, 38 s of workers\n" in said
    assert "| guest | 1 | 30.0 | 1.0 | 0.0 | 31.0 |\n| tests/query | 2 | 1.0 | 6.0 |" in said
    assert "| lua | session | 2 | 3.5 | 2.0 |" in said
    assert "tmp_path" not in said
    assert "| bookworm, demo-first: make demo | 12.0 |" in said


def test_without_records_it_says_where_they_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert minutes.main([]) == 2
    assert "make test leaves them" in capsys.readouterr().err
