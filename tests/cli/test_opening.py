# SPDX-License-Identifier: Apache-2.0
"""One command shows a build: what is missing is made first, and a database above is found."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etrace.cli import main

BIN = Path(sys.executable).parent
MADE = ".nfsdb.img"


def call(where: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=where, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": "/", **env},
    )  # fmt: skip


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    assert call(tmp_path, "etrace", "run", "-q", "--", "/bin/echo", "one").returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    "view", ["summary", "critical-path", "report -o p.html", "timeline -o t.json"]
)
def test_a_view_makes_what_is_missing_and_then_nothing(traced: Path, view: str) -> None:
    first = call(traced, "etrace", *view.split())
    assert first.returncode == 0, first.stderr
    assert "etrace: parsing .nfsdb\n" in first.stderr
    assert "etrace: finding wrappers, patterns, linked, compilations, graph" in first.stderr
    inode = (traced / MADE).stat().st_ino
    again = call(traced, "etrace", *view.split())
    assert "parsing" not in again.stderr
    assert "finding" not in again.stderr
    assert (traced / MADE).stat().st_ino == inode


def test_a_view_shows_the_new_build_after_a_second_one(traced: Path) -> None:
    call(traced, "etrace", "summary")
    call(traced, "etrace", "run", "-q", "--", "/bin/sh", "-c", "/bin/true; /bin/true")
    shown = call(traced, "etrace", "summary")
    assert "parsing .nfsdb" in shown.stderr
    assert shown.stdout.startswith("3 processes, 3 commands")
    assert call(traced, "cas", "commands", "--count").stdout == "3\n"


def test_queries_do_not_make_what_is_stale(traced: Path) -> None:
    call(traced, "etrace", "summary")
    call(traced, "etrace", "run", "-q", "--", "/bin/true")
    done = call(traced, "cas", "commands")
    assert done.returncode == 2
    assert "has changed since the database was made from it" in done.stderr


def test_a_query_makes_the_database_that_is_not_there(traced: Path) -> None:
    done = call(traced, "cas", "commands")
    assert (done.returncode, done.stdout) == (0, "/bin/echo one\n")
    assert done.stderr == (
        "cas: parsing .nfsdb\n"
        "cas: finding wrappers, patterns, linked, compilations, graph, targets\n"
    )
    assert call(traced, "cas", "commands").stderr == ""


def test_a_database_without_its_trace_is_taken_as_it_is(traced: Path) -> None:
    assert call(traced, "cas", "parse", "-q").returncode == 0
    (traced / ".nfsdb").unlink()
    inode = (traced / MADE).stat().st_ino
    done = call(traced, "etrace", "summary")
    assert (done.returncode, done.stderr) == (0, "")
    assert (traced / MADE).stat().st_ino == inode


def test_a_database_named_by_its_file_is_taken_as_it_is(traced: Path) -> None:
    call(traced, "cas", "parse", "-q")
    call(traced, "etrace", "run", "-q", "--", "/bin/sh", "-c", "/bin/true; /bin/true")
    shown = call(traced, "etrace", "summary", "--db", MADE)
    assert shown.stdout.startswith("1 process, 1 command")


def test_a_build_that_is_still_traced_is_refused(traced: Path) -> None:
    with (traced / ".nfsdb").open("rb") as trace:
        fcntl.flock(trace, fcntl.LOCK_EX)
        done = call(traced, "etrace", "report")
    assert done.returncode == 2
    assert "the build is still being traced" in done.stderr
    assert "etrace top" in done.stderr
    assert not (traced / "build.html").exists()


def test_without_a_trace_the_way_to_one_is_shown(tmp_path: Path) -> None:
    done = call(tmp_path, "etrace", "summary")
    assert done.returncode == 2
    assert "no trace and no database\n  hint: make one: etrace run -- make -j8" in done.stderr
    done = call(tmp_path, "cas", "commands")
    assert done.returncode == 2
    assert "no database\n  hint: make one: etrace run -- make -j8" in done.stderr


def test_a_database_above_is_used_and_named(traced: Path) -> None:
    below = traced / "src" / "deep"
    below.mkdir(parents=True)
    assert call(below, "cas", "parse").stdout.startswith("../../.nfsdb.img: 1 process")
    done = call(below, "cas", "commands")
    assert done.stdout == "/bin/echo one\n"
    assert done.stderr == f"cas: the database is that of {traced}\n"
    assert f"etrace: the database is that of {traced}\n" in call(below, "etrace", "summary").stderr


@pytest.mark.parametrize("option", ["--report", "--report=page.html"])
def test_run_and_report_are_one_command(tmp_path: Path, option: str) -> None:
    done = call(tmp_path, "etrace", "run", option, "sh", "-c", "/bin/echo said; exit 3")
    assert (done.returncode, done.stdout) == (3, "said\n")
    page = tmp_path / (option.partition("=")[2] or "build.html")
    assert "<html" in page.read_text()
    assert f"etrace: the report is {page.name} (" in done.stderr
    assert "next:" not in done.stderr


def test_the_page_of_a_killed_build_is_made(tmp_path: Path) -> None:
    done = call(tmp_path, "etrace", "run", "-q", "--report", "--", "sh", "-c", "kill -9 $$")
    assert (done.returncode, done.stderr) == (-9, "")
    assert (tmp_path / "build.html").exists()


@pytest.mark.parametrize("page", ["missing/page.html", ".", ""])
def test_a_page_that_cannot_be_written_is_refused_before_the_build(
    tmp_path: Path, page: str
) -> None:
    done = call(tmp_path, "etrace", "run", f"--report={page}", "--", "touch", "built")
    assert done.returncode == 2
    assert f"--report={page}: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_o_of_run_import_and_parse_is_a_directory(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        '7 1.0 execve("/bin/true", ["true"], 0x7ffd /* 3 vars */) = 0\n'
        "7 2.0 +++ exited with 0 +++\n"
    )
    for words in (
        "etrace run -q -o run -- /bin/true",
        "etrace import -q strace log --cwd / -o import",
        "cas parse -q run/.nfsdb -o parse",
    ):
        done = call(tmp_path, *words.split())
        assert done.returncode == 0, done.stderr
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/.nfsdb*")}
    assert {"run/.nfsdb", "import/.nfsdb", "parse/.nfsdb.img"} <= made
    for words in ("etrace run -o x/.nfsdb true", "etrace import strace log -o x/.nfsdb",
                  "cas parse -o x/.nfsdb.img"):  # fmt: skip
        done = call(tmp_path, *words.split())
        assert "-o takes a directory" in done.stderr, words


@pytest.mark.parametrize(
    "words", ["etrace import strace log -o new", "cas parse log -o new", "cas parse gone -o new"]
)
def test_what_fails_leaves_no_directory(tmp_path: Path, words: str) -> None:
    (tmp_path / "log").write_text("no log and no trace\n")
    assert call(tmp_path, *words.split()).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_program_instead_of_a_command_gets_the_right_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, hint in (
        (["sh", "-c", "a b"], "did you mean: etrace run -- sh -c 'a b'"),
        (["summery"], "did you mean summary?"),
    ):
        with pytest.raises(SystemExit):
            main.etrace(words)
        assert hint in capsys.readouterr().err
