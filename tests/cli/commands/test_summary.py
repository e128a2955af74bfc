# SPDX-License-Identifier: Apache-2.0
"""The flow of the README in one directory, as often as builds are made there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def call(where: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=where, capture_output=True, text=True, check=False, umask=0o022,
    )  # fmt: skip


def trace(where: Path, script: str) -> None:
    assert call(where, "etrace", "run", "-q", "--", "sh", "-c", script).returncode == 0


def parse(where: Path) -> None:
    assert call(where, "etrace_parser", ".nfsdb", ".nfsdb.json").returncode == 0


def commands(where: Path) -> str:
    done = call(where, "cas", "commands")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_second_build_of_a_directory_is_parsed_and_asked_as_the_first(tmp_path: Path) -> None:
    for name in ("one", "two"):
        trace(tmp_path, f"/bin/echo {name}")
        parse(tmp_path)
        assert call(tmp_path, "cas", "pp").returncode == 0
        assert f"echo {name}" in commands(tmp_path)
        assert call(tmp_path, "etrace", "summary").stderr == ""


def test_a_summary_of_an_older_build_says_so_and_what_to_do(tmp_path: Path) -> None:
    trace(tmp_path, "/bin/echo one")
    parse(tmp_path)
    trace(tmp_path, "/bin/echo two")
    done = call(tmp_path, "etrace", "summary", "--db", ".nfsdb.json")
    assert done.returncode == 0
    assert done.stderr == (
        "etrace: .nfsdb.json is older than .nfsdb: it is of another build\n"
        "  hint: make it again: cas parse .nfsdb\n"
    )
    parse(tmp_path)
    done = call(tmp_path, "etrace", "summary", "--db", ".nfsdb.json")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("stats", "first"),
    [
        ({"ended": "interrupted"}, "the build was interrupted; the trace ends there"),
        ({"ended": "exit", "lost": 1234}, "events that the capture lost: 1,234"),
        ({"ended": "exit", "lost": 0}, "1 process, "),
        ([], "1 process, "),
    ],
)
def test_a_summary_says_what_the_capture_could_not_see(
    tmp_path: Path, stats: object, first: str
) -> None:
    trace(tmp_path, "exit 0")
    parse(tmp_path)
    (tmp_path / ".nfsdb.stats").write_text(json.dumps(stats))
    assert call(tmp_path, "etrace", "summary").stdout.startswith(first)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_what_is_made_of_a_trace_can_be_read_by_whom_the_trace_can(
    tmp_path: Path, mode: int
) -> None:
    trace(tmp_path, "/bin/true")
    (tmp_path / ".nfsdb").chmod(mode)
    parse(tmp_path)
    commands = (
        "pp", "commands", "export parquet tables", "export json -o copy.json", "execs -o answer",
    )  # fmt: skip
    for command in commands:
        assert call(tmp_path, "cas", *command.split()).returncode == 0
    made = [
        *tmp_path.glob(".nfsdb.*"),
        tmp_path / "copy.json",
        tmp_path / "answer",
        *(tmp_path / "tables").iterdir(),
    ]
    modes = {path.name: path.stat().st_mode & 0o777 for path in made if path.suffix != ".stats"}
    assert {".nfsdb.json", ".nfsdb.env.json", ".nfsdb.mounts.json", ".nfsdb.img"} < set(modes)
    assert modes == dict.fromkeys(modes, mode)


def test_root_alone_can_read_what_is_made_of_standard_input(tmp_path: Path) -> None:
    trace(tmp_path, "/bin/true")
    command = f"{BIN}/etrace_parser - x.json < .nfsdb && {BIN}/cas --dbdir x.json execs -o answer"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, umask=0o022)
    mode = 0o600 if os.geteuid() == 0 else 0o644
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("x.json", "answer")} == {mode}
