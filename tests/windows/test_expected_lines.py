# SPDX-License-Identifier: Apache-2.0
"""The tracer against programs that report what they were started with (programs/actor.c)."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from windows.wine import WINE, Done, Wine, plain, read_spec, reported, windows_path

SURROGATE = "\ud83d"


class Traced:
    """One run of the actor below the tracer, with all its outputs."""

    def __init__(self, wine: Wine, actor: Path, folder: Path, *words: str) -> None:
        self.folder, self.log = folder, folder / "log"
        shutil.copy(actor, folder / "actor.exe")
        env = {"ACTOR_LOG": windows_path(self.log)}
        options = ("-d", "-o", "spec.json", "--nfsdb", "trace", "--")
        self.done: Done = wine.trace(folder, *options, "actor.exe", *words, env=env)
        self.items = read_spec(folder / "spec.json")
        self.lines = (folder / "trace").read_bytes().splitlines()

    @property
    def reported(self) -> list[dict[str, Any]]:
        return reported(self.log)

    def exits(self) -> list[int]:
        """Return the statuses in the event lines, sorted."""
        return sorted(int(line.rpartition(b"=")[2]) for line in self.lines if b"!Exit|" in line)


@pytest.fixture
def traced(wine: Wine, actor: Path, tmp_path: Path) -> Any:
    """Run the actor with some words."""
    return lambda *words: run_again(wine, actor, tmp_path, *words)


def run_again(wine: Wine, actor: Path, folder: Path, *words: str) -> Traced:
    """Run the actor; again when Wine gave up.

    On a busy machine one of 25 chains of 26 programs ended early in Wine 8 without a tracer: a
    program died as it began, which makes CreateProcess() fail with 1359, ERROR_INTERNAL_ERROR. One
    of four runs of 1,000 programs hung.
    """
    for attempt in range(3):
        place = folder / str(attempt)
        place.mkdir()
        with contextlib.suppress(subprocess.TimeoutExpired):
            run = Traced(wine, actor, place, *words)
            if "CreateProcess: error 1359" not in run.done.error:
                return run
    pytest.fail("Wine gave up three times")


@pytest.mark.parametrize(
    ("words", "status", "n"),
    [
        pytest.param(("exit", "7"), 7, 1, id="one program"),
        pytest.param(("run", "actor.exe", "exit", "3"), 3, 2, id="a child's status"),
        pytest.param(("in", r"C:\windows", "actor.exe", "exit", "2"), 2, 2, id="its directory"),
        pytest.param(("as", "renamed", "exit", "5"), 5, 2, id="another argument 0"),
        pytest.param(("tree", "3", "2"), 0, 15, id="a tree of programs"),
        pytest.param(("tree", "25", "1"), 0, 26, id="a deep tree"),
        pytest.param(("leave",), 0, 3, id="children that outlive their parent"),
        pytest.param(("kill",), 9, 2, id="a program that is ended"),
        pytest.param(("job",), 4, 2, id="a job inside of the tracer's"),
        pytest.param(("breakaway",), 4, 2, id="a program that leaves the job"),
        pytest.param(("debug", "actor.exe", "exit", "5"), 5, 2, id="a debugger in the build"),
        pytest.param(("debugged",), 1, 1, id="a program that asks for a debugger"),
        pytest.param(("crash",), 5, 1, id="an access violation"),
        pytest.param(("trap",), 6, 1, id="a breakpoint of the program"),
        pytest.param(("raise", "e0000001"), 6, 1, id="an exception that the program handles"),
        pytest.param(("raise", "40010005"), 6, 1, id="the exception of Ctrl-C"),
    ],
)
def test_every_program_is_recorded_as_it_was_started(
    traced: Any, words: tuple[str, ...], status: int, n: int
) -> None:
    run = traced(*words)
    assert run.done.status == status, run.done
    assert len(run.reported) == n
    by = lambda item: json.dumps(item, sort_keys=True)  # noqa: E731
    assert sorted(plain(run.items), key=by) == sorted(run.reported, key=by)
    assert len(run.exits()) == n


def test_programs_one_after_the_other_are_in_the_order_of_time(traced: Any) -> None:
    run = traced("tree", "3", "2")
    assert plain(run.items) == run.reported
    pids = [item["pid"] for item in run.items]
    assert len(set(pids)) == 15
    assert run.items[0]["ppid"] == "0"
    assert {item["ppid"] for item in run.items[1:]} <= set(pids)
    assert {item["function"] for item in run.items} == {"CreateProcess"}


def test_hundreds_of_programs_are_all_recorded(traced: Any) -> None:
    run = traced("many", "500")
    assert run.done.status == 0, run.done
    assert len(run.reported) == len(run.items) == len(run.exits()) == 501
    upids = {line.partition(b",")[0] for line in run.lines if b"!New_proc|" in line}
    assert len(upids) == 501


@pytest.mark.parametrize(
    "line",
    [
        r'actor.exe exit 0 "a b" c\d "e\\" "f\"g" h"i j"k ""',
        r'actor.exe exit 0 \\server\share "x""y" """z""" \\"q r\\" a\\\"b',
        '"actor.exe" exit 0\ttabs\t "tab\tin"  two  blanks',
        "actor.exe exit 0 größe 日本語 \U0001f600 [x] {y} %PATH% 'single'",
        "actor.exe exit 0 " + "long" * 1500,
    ],
)
def test_arguments_are_those_of_microsofts_c_library(
    wine: Wine, actor: Path, tmp_path: Path, line: str
) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    (tmp_path / "build.txt").write_text(line)
    env = {"ACTOR_LOG": windows_path(tmp_path / "log")}
    done = wine.trace(
        tmp_path, "-d", "-o", "spec.json", "--", "actor.exe", "line", "build.txt", env=env
    )
    assert done.status == 0, done
    assert plain(read_spec(tmp_path / "spec.json")) == reported(tmp_path / "log")
    assert len(reported(tmp_path / "log")) == 2


def test_names_that_are_no_unicode_are_kept(wine: Wine, actor: Path, tmp_path: Path) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    env = {"ACTOR_LOG": windows_path(tmp_path / "log")}
    done = wine.trace(
        tmp_path, "-d", "-o", "spec.json", "--nfsdb", "t", "--", "actor.exe", "lone", env=env
    )
    assert done.status == 0, done
    items = read_spec(tmp_path / "spec.json")
    assert plain(items) == reported(tmp_path / "log")
    assert items[1]["arguments"][-1] == f"x{SURROGATE}y"
    assert b"]x\xed\xa0\xbdy\n" in (tmp_path / "t").read_bytes()


def test_directories_outside_of_ascii_are_kept(wine: Wine, actor: Path, tmp_path: Path) -> None:
    folder = tmp_path / "größe 日本"
    folder.mkdir()
    run = Traced(wine, actor, folder, "run", "actor.exe", "exit", "0")
    assert plain(run.items) == run.reported
    assert run.items[0]["directory"] == windows_path(folder)


def test_ctrl_c_ends_the_build_and_not_the_tracer(wine: Wine, actor: Path, tmp_path: Path) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    ours, theirs = pty.openpty()  # Wine has a console only where there is a terminal
    with subprocess.Popen(
        [WINE, wine.tracer, "-d", "-o", "spec.json", "--", "actor.exe", "control"],
        cwd=tmp_path,
        env={**wine.environment, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        _, error = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 8, error
    assert len(read_spec(tmp_path / "spec.json")) == 1


def test_an_exit_code_beyond_eight_bits_reaches_the_caller(
    wine: Wine, actor: Path, tmp_path: Path
) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    shutil.copy(wine.tracer, tmp_path / "tracer.exe")
    (tmp_path / "check.cmd").write_bytes(
        b"@tracer.exe -o spec.json --nfsdb trace -- actor.exe exit 74565\r\n"
        b"@if errorlevel 74565 if not errorlevel 74566 exit 77\r\n"
    )
    done = wine.run(["cmd", "/c", "check.cmd"], tmp_path)
    assert done.status == 77, done
    assert b"!Exit|status=255\n" in (tmp_path / "trace").read_bytes()


def test_nothing_is_left_when_the_command_cannot_be_started(wine: Wine, tmp_path: Path) -> None:
    done = wine.trace(tmp_path, "--nfsdb", "trace", "-o", "spec.json", "--", "no-such-program")
    assert done.status == 127
    assert "cmd /c" in done.error
    assert list(tmp_path.iterdir()) == []


def test_a_killed_tracer_leaves_nothing(wine: Wine, actor: Path, tmp_path: Path) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    shutil.copy(wine.tracer, tmp_path / "tracer.exe")
    before = {path.name for path in tmp_path.iterdir()} | {"log"}
    env = {"ACTOR_LOG": windows_path(tmp_path / "log")}
    line = "tracer.exe -o spec.json --nfsdb trace -- actor.exe killer tracer.exe"
    wine.run(["cmd", "/c", line], tmp_path, env=env)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_the_tracer_keeps_no_handle_of_programs_that_ended(traced: Any) -> None:
    """Windows closes two of each program itself when it has ended; Wine leaves them."""
    run = traced("handles", "40")
    assert run.done.status <= 2 * 40, run.done
    assert len(run.items) == 42


def test_a_large_environment_is_read_whole(wine: Wine, actor: Path, tmp_path: Path) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    words = ("--nfsdb", "trace", "--env", "--", "actor.exe", "environment", "20000")
    done = wine.trace(tmp_path, *words)
    assert (done.status, done.error) == (0, "")
    assert (tmp_path / "trace").read_bytes().count(b"Env[0]VARIABLE_") == 19999


def test_an_environment_beyond_the_limit_is_said_to_be_cut(
    wine: Wine, actor: Path, tmp_path: Path
) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    words = ("--nfsdb", "trace", "--env", "--", "actor.exe", "environment", "80000")
    done = wine.trace(tmp_path, *words)
    assert done.status == 0
    assert done.error.endswith("the environment of 1 processes is not in the trace, or not whole\n")


def test_an_output_that_cannot_be_replaced_is_kept_under_its_other_name(
    wine: Wine, actor: Path, tmp_path: Path
) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    shutil.copy(wine.tracer, tmp_path / "tracer.exe")
    words = ("tracer.exe", "-d", "-o", "held.json", "--", "actor.exe", "exit", "3")
    done = wine.run([tmp_path / "actor.exe", "hold", "held.json", *words], tmp_path)
    assert done.status == 125
    [kept] = tmp_path.glob("held.json.*.tmp")
    assert f"the whole output is in {kept.name}" in done.error
    assert [item["arguments"] for item in read_spec(kept)] == [["actor.exe", "exit", "3"]]


def test_a_file_of_the_build_with_the_name_of_saved_response_files_stays(
    wine: Wine, actor: Path, tmp_path: Path
) -> None:
    shutil.copy(actor, tmp_path / "actor.exe")
    (tmp_path / "objects.rsp").write_text("a.obj b.obj")
    done = wine.trace(tmp_path, "--nfsdb", "objects", "--", "actor.exe", "exit", "0")
    assert done.status == 0, done
    assert (tmp_path / "objects.rsp").read_text() == "a.obj b.obj"
    (tmp_path / "objects.rsp").write_text("etrace response files 1\n")
    wine.trace(tmp_path, "--nfsdb", "objects", "--", "actor.exe", "exit", "0")
    assert not (tmp_path / "objects.rsp").exists()


def test_windows_7_has_no_job_and_the_tracer_says_what_it_misses(
    wine: Wine, actor: Path, tmp_path: Path
) -> None:
    """There a program in a job cannot be put into another one, and builds would fail."""
    shutil.copy(actor, tmp_path / "actor.exe")
    shutil.copy(wine.tracer, tmp_path / "tracer7.exe")
    wine.set_version("win7", "tracer7.exe")
    words = ("-d", "-o", "spec.json", "--", "actor.exe", "debug", "actor.exe", "exit", "5")
    done = wine.run([tmp_path / "tracer7.exe", *words], tmp_path)
    assert done.status == 5
    assert "programs that the build debugs itself will be missing" in done.error
    assert len(read_spec(tmp_path / "spec.json")) == 1
