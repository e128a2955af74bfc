# SPDX-License-Identifier: Apache-2.0
"""build-aux/mutate.py: its table fits the tree, and nothing that it starts outlives it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import mutate
import pytest
from mutation import Sources

TOP = Path(__file__).resolve().parents[2]
FAULTS = list(mutate.faults())
#: leaves a process of another session that holds its output and a lock
LEAVES = """
import fcntl, os, signal, sys
fcntl.flock(os.open("lock", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
if os.fork() == 0:
    os.setsid()
    signal.pause()
"""
#: in a process of its own: it ends all of its children
RUN = """
import sys
from pathlib import Path
import mutate
mutate.COPY = Path(sys.argv[1])
print(mutate.run(sys.executable, "-c", sys.argv[2], limit_s=float(sys.argv[3]))[0])
"""


def test_each_fault_fits_the_tree() -> None:
    assert mutate.stale(FAULTS) == []


def test_a_fault_that_does_not_fit_is_named() -> None:
    fault = mutate.Fault("group", "gone", "<", ">", ())
    message = "gone: no such function: write its new name, or its file's"
    assert mutate.stale([fault]) == [message]


def test_a_test_that_is_gone_is_named() -> None:
    here = "tests/build_aux/test_mutate.py"
    tests = (
        here,
        f"{here}::test_a_test_that_is_gone_is_named",
        f"{here}::gone[1]",
        "tests/gone.py",
    )
    fault = mutate.Fault("group", "", "", "", tests)
    assert mutate.missing_tests([fault]) == [f"{here}::gone[1]", "tests/gone.py"]


def test_there_are_sixty_faults_each_with_tests_that_exist() -> None:
    assert len({(each.function, each.place, each.becomes) for each in FAULTS}) == 60
    assert mutate.missing_tests(FAULTS) == []


def test_a_fault_of_python_is_python() -> None:
    sources = Sources(TOP)
    changed = [sources.changed(each.function, each.place, each.becomes) for each in FAULTS]
    of_python = [(path, text) for path, text in changed if path.suffix == ".py"]
    assert len(of_python) >= 5
    for path, text in of_python:
        compile(text, path, "exec")


@pytest.mark.parametrize(
    ("command", "limit_s", "status"),
    [
        pytest.param(LEAVES, 10**6, "0", id="ends"),
        pytest.param(LEAVES + "signal.pause()", 1, "None", id="endless"),
    ],
)
def test_what_a_command_leaves_is_ended(
    tmp_path: Path, command: str, limit_s: float, status: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path, command, str(limit_s)],
        cwd=TOP / "build-aux",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (status, "")
    with (tmp_path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
