# SPDX-License-Identifier: Apache-2.0
"""`etrace import`: the files that it makes, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from etrace.cli.main import cas, etrace

LOG = (
    '10 1795392547.1 execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0\n'
    '10 1795392547.2 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a>\n'
    "10 1795392547.3 +++ exited with 0 +++\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text(LOG)
    return path


def test_a_log_of_strace_becomes_a_database(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace(["import", "strace", str(log), "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "the CPU of each event: it is 0" in told
    assert "1 process, 1 program and 1 open ->" in told
    assert (tmp_path / ".nfsdb").stat().st_mode & 0o777 == 0o600
    assert cas(["parse", "--dbdir", str(tmp_path)]) == 0
    assert cas(["faccess", "--path", "/w/a", "--dbdir", str(tmp_path)]) == 0


def test_an_older_trace_and_its_files_are_kept(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    (tmp_path / ".nfsdb.stats").write_text("{}")
    assert etrace(["import", "strace", str(log), "-o", str(tmp_path / ".nfsdb"), "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / ".nfsdb.old").read_text() == "older"
    assert (tmp_path / ".nfsdb.stats.old").read_text() == "{}"
    assert not (tmp_path / ".nfsdb.stats").exists()


def test_nothing_is_written_of_what_is_no_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text("hello\n")
    (tmp_path / ".nfsdb").write_text("older")
    words = ["import", "strace", str(tmp_path / "log"), "-o", str(tmp_path), "--cwd", "/"]
    assert etrace(words) == 1
    assert f"{tmp_path}/log:1: no line of strace" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".nfsdb", "log"]


def test_standard_input_stands_alone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(["import", "strace", "-", str(log)]) == 2
    assert "stands alone" in capsys.readouterr().err
