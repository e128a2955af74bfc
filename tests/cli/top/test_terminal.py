# SPDX-License-Identifier: Apache-2.0
"""`etrace top` beside a build: on a terminal, as one printout, and where nothing is traced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal import Terminal
from trying import until

PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from etrace.cli.main import etrace; sys.exit(etrace())",
]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}


@pytest.fixture
def building(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A build that is traced: it fails once, then waits for its standard input."""
    script = "sh -c 'exit 3'; sh -c 'echo up >up; read x; exit 0'; touch done"
    build = subprocess.Popen(
        [*PROGRAM, "run", "--backend", "ptrace", "--", "sh", "-c", script], cwd=tmp_path,
        env=environment(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until((tmp_path / "up").exists)
    yield build
    build.kill()
    build.wait()


def once(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "top", "--once"], cwd=folder, env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_terminal_shows_it_and_q_leaves_the_build_running(
    building: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with Terminal([*PROGRAM, "top"], tmp_path, environment()) as terminal:
        terminal.wait_for("1 failed")
        terminal.wait_for("sh -c echo up")
        terminal.type("f")
        terminal.wait_for("EXIT")
        terminal.wait_for("sh -c exit 3")
        terminal.type("q")
        assert terminal.end() == 0
    assert building.poll() is None
    building.communicate(b"\n", timeout=60)
    assert (building.returncode, (tmp_path / "done").exists()) == (0, True)


def test_once_prints_what_runs(building: subprocess.Popen[bytes], tmp_path: Path) -> None:
    def shown() -> str:
        return once(tmp_path).stdout

    until(lambda: "1 failed" in shown())
    assert "sh -c echo up >up; read x; exit 0\n" in shown()
    building.communicate(b"\n", timeout=60)
    after = once(tmp_path)
    assert (after.returncode, "its build has ended: etrace summary" in after.stderr) == (1, True)


def test_where_nothing_is_traced_the_way_to_it_is_named(tmp_path: Path) -> None:
    done = once(tmp_path)
    assert done.returncode == 1
    assert "nothing is being traced here" in done.stderr
    assert "etrace run -- make" in done.stderr


def test_without_a_terminal_it_names_once(
    building: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    done = subprocess.run(
        [*PROGRAM, "top"], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, "--once" in done.stderr) == (2, True)
    assert building.poll() is None
