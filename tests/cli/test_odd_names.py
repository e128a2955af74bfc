# SPDX-License-Identifier: Apache-2.0
"""Paths of any bytes come out unchanged, are valid in JSON, and do nothing to a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from terminal import Terminal

UPID = 1 << 22 | 1
NAMES = [b'/s/"\\.c', b"/s/\x1b[31m.c", b"/s/a\nb", b"/s/\xff\xfe", "/s/zażółć.c".encode(),
         "/s/\x9b\u202e.c".encode()]  # fmt: skip
PROGRAM = [sys.executable, "-c", "import sys; from etrace.cli.main import cas; sys.exit(cas())"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("odd")
    t = TraceBuilder(cwd="/s").exec(UPID, "/bin/sh", [b"sh", *NAMES])
    for name in NAMES:
        t.use(UPID, name)
    database_of(directory, t.exit(UPID).trace())
    return directory


def environment(database: Path) -> dict[str, str]:
    return {**os.environ, "DB_DIR": str(database), "PYTHONPATH": os.pathsep.join(sys.path)}


def run(database: Path, *words: str | bytes) -> bytes:
    done = subprocess.run([*PROGRAM, *words], env=environment(database), capture_output=True,
                          check=True)  # fmt: skip
    assert done.stderr == b""
    return done.stdout


def test_names_end_by_nul_as_they_are(database: Path) -> None:
    assert run(database, "refs", "-0").split(b"\0") == [*sorted(NAMES), b""]


def test_json_gives_the_bytes_back(database: Path) -> None:
    entries = json.loads(run(database, "refs", "--json").decode())["entries"]
    assert [os.fsencode(entry) for entry in entries] == sorted(NAMES)
    (command,) = json.loads(run(database, "cmds", "--json").decode())["entries"]
    assert [os.fsencode(argument) for argument in command["command"]] == [b"sh", *NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_found_by_its_bytes(database: Path, name: bytes) -> None:
    assert run(database, "refs", "--path", name, "-0") == name + b"\0"
    quoted = name[3:].replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    assert run(database, "refs", "--filter", b'[path="' + quoted + b'"]', "-0") == name + b"\0"


def test_a_shell_runs_a_shown_command_as_it_was(database: Path) -> None:
    shown = run(database, "cmds").rstrip(b"\n")
    script = b"set -- " + shown + b"; printf '%s\\0' \"$@\""
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [b"sh", *NAMES]


def test_a_terminal_shows_what_would_change_it(database: Path, tmp_path: Path) -> None:
    env = environment(database) | {"LC_ALL": "C.UTF-8"}
    with Terminal([*PROGRAM, "refs"], tmp_path, env) as terminal:
        terminal.wait_for(r"/s/\\x1b\[31m\.c")
        terminal.wait_for("zażółć")
        assert "\x1b" not in terminal.log


@pytest.mark.parametrize("words", [["export", "json"], ["refs", "--json"]])
def test_a_terminal_shows_json_that_would_change_it(
    database: Path, tmp_path: Path, words: list[str]
) -> None:
    env = environment(database) | {"LC_ALL": "C.UTF-8"}
    with Terminal([*PROGRAM, *words], tmp_path, env) as terminal:
        terminal.wait_for("zażółć")
        terminal.wait_for(r"/s/\\x9b\\x202e\.c")
        assert not {"\x1b", "\x9b", "\u202e"} & set(terminal.log)


def test_a_terminal_has_a_name_on_one_line(database: Path, tmp_path: Path) -> None:
    env = environment(database) | {"LC_ALL": "C.UTF-8"}
    for words in (["refs"], ["commands"]):
        with Terminal([*PROGRAM, *words], tmp_path, env) as terminal:
            terminal.wait_for(r"\$'/s/a\\nb'")
    assert b"/s/a\nb\n" in run(database, "refs")  # a pipe gets it unchanged
    quoted = subprocess.run(
        ["bash", "-c", r"printf %s $'/s/a\nb'"], capture_output=True, check=True
    )
    assert quoted.stdout == b"/s/a\nb"


def test_an_execution_without_a_program_is_no_blank_line(database: Path) -> None:
    lines = run(database, "execs").splitlines()
    assert lines[0] == b"# process %d:0 before its first program" % UPID
    assert b"" not in lines
