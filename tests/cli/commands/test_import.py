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
    reported = capsys.readouterr().err
    assert "the CPU of each event: it is 0" in reported
    assert "1 process, 1 command and 1 open ->" in reported
    assert (tmp_path / ".nfsdb").stat().st_mode & 0o777 == 0o600
    assert cas(["parse", "--dbdir", str(tmp_path)]) == 0
    assert cas(["faccess", "--path", "/w/a", "--dbdir", str(tmp_path)]) == 0


def test_an_older_trace_and_its_files_are_kept(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".nfsdb").write_text("older")
    (tmp_path / ".nfsdb.stats").write_text("{}")
    assert etrace(["import", "strace", str(log), "-o", str(tmp_path), "-q"]) == 0
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
    assert etrace(words) == 2
    assert f"{tmp_path}/log:1: no line of strace" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".nfsdb", "log"]


def test_standard_input_is_alone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etrace(["import", "strace", "-", str(log)]) == 2
    assert "holds one log" in capsys.readouterr().err


WINDOWS = r"""1
3
5=Process
29=NtCreateFile
1=CreateFile
2
1=Read
2=Write
3
100,"C:\cl.exe",99,637989104119349710,637989104120394770,0
"C:\cl.exe" /c a.c
101,"C:\link.exe",99,637989104121349710,637989104122394770,0
link a.obj
99,"C:\make.exe",1,637989104118349710,637989104123394770,0
make
0
4
1=C:\make.exe
2=C:\src\a.c
3=C:\src\a.obj
4=C:\src\a.exe
7
0,99,,1,5,1,0,0,
1,100,,1,5,1,0,0,
2,100,,2,29,1,0,0,
3,100,,3,1,2,0,0,
4,101,,1,5,1,0,0,
5,101,,3,29,1,0,0,
6,101,,4,1,2,0,0,
"""


def test_a_build_of_windows_can_be_queried_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, again = tmp_path / "trace", tmp_path / "again"
    trace.write_bytes(b"\xef\xbb\xbf" + WINDOWS.replace("\n", "\r\n").encode())
    assert etrace(["import", "file-access-trace", str(trace), "-o", str(tmp_path), "-q"]) == 0
    assert cas(["parse", "--dbdir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert cas(["deps", r"C:\src\a.exe", "--dbdir", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [r"C:\src\a.c", r"C:\src\a.obj"]
    words = ["export", "file-access-trace", "--dbdir", str(tmp_path)]
    assert cas([*words, "-o", str(again)]) == 0
    assert again.read_text() == WINDOWS
    assert cas([*words, "--root", "100", "--path-blocks", "manifest"]) == 0
    part = capsys.readouterr().out.splitlines()
    assert part[-4:] == ["3", "1,100,1,,5,1,0,0,", "2,100,2,,29,1,0,0,", "3,100,3,,1,2,0,0,"]
    assert cas([*words, "--root", "7"]) == 2
    assert "7: no process of the trace" in capsys.readouterr().err


def test_options_of_strace_are_refused_elsewhere(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etrace(["import", "file-access-trace", str(log), "--here"]) == 2
    assert "--cwd and --here are for strace" in capsys.readouterr().err
    assert etrace(["import", "file-access-trace", str(log), str(log)]) == 2
