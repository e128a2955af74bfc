# SPDX-License-Identifier: Apache-2.0
"""`etrace serve` as a command: what it says, how it ends, what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import databases
import pytest
from serve.asking import PROGRAM, Server


def fail(*words: str, code: str = PROGRAM) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", *words], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_it_says_whom_it_shows_what(database: Path) -> None:
    said = Server(database).end()
    assert said == "etrace: serving build; whoever has this address can read all of it.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(database: Path, number: signal.Signals) -> None:
    server = Server(database)
    assert server.query("stat").status == 200
    server.process.send_signal(number)
    _, said = server.process.communicate(timeout=30)
    assert "Traceback" not in said


def test_several_databases_have_the_names_of_their_directories(tmp_path: Path) -> None:
    paths = [databases.write_database(tmp_path / name) for name in ("old", "new")]
    server = Server(*paths)
    listed = server.ask("/api/v1/databases").value["databases"]
    assert [each["name"] for each in listed] == ["old", "new"]
    server.end()


@pytest.mark.parametrize("option", [[], ["--db"]])
def test_a_name_twice_is_refused(tmp_path: Path, option: list[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [databases.write_database(tmp_path / name / "build") for name in ("a", "b")]
    status, said = fail(*(word for path in paths for word in (*option, str(path))))
    assert (status, "two databases are called build" in said) == (2, True)


def test_a_port_that_is_taken_is_named(database: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, said = fail("--port", str(port), str(database))
    assert status == 2
    assert f"127.0.0.1 port {port}: Address already in use" in said
    assert "--port N" in said


def test_a_missing_library_is_named_with_the_command_that_installs_it(database: Path) -> None:
    status, said = fail(str(database), code=f"import sys; sys.modules['uvicorn'] = None; {PROGRAM}")
    assert status == 2
    assert "/bin/python -m pip install starlette uvicorn" in said


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    status, said = fail(str(tmp_path))
    assert (status, str(tmp_path) in said) == (2, True)
