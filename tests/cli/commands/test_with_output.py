# SPDX-License-Identifier: Apache-2.0
"""`cas commands --with-output` and `etrace summary`: what commands wrote, why a build failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of

from etrace.cli.main import cas, etrace

MAKE, CC, LATER, FORK = (n << 22 | n for n in range(1, 5))


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A make whose cc fails, and whose fork ran nothing; cc colours and clears the screen."""
    t = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/make", ["make"])
    t.fork(MAKE, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    t.written(CC, "first\n").written(CC, b"\x1b[31mbad\x1b[0m \x07\xff\n", cut=9)
    t.exit(CC, 1)
    t.fork(MAKE, FORK).written(FORK, "make: nosuch: No such file\n").exit(FORK, 127)
    t.written(MAKE, "cc -c a.c\n", fd=1).written(MAKE, "make: *** [a.o] Error 1\n").exit(MAKE, 2)
    database_of(tmp_path, t.trace())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_output_is_below_its_command(
    build: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cas(["commands", "--with-output"]) == 0
    assert capfdbinary.readouterr().out.splitlines() == [
        b"make", b"    1| cc -c a.c", b"    2| make: *** [a.o] Error 1",
        b"    2| make: nosuch: No such file",
        b"cc -c a.c", b"    2| first", b"    2| ", b"    2| [9 bytes left out]",
        b"    2| bad \x07\xff",
    ]  # fmt: skip


def test_json_has_the_bytes_as_they_were(build: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cas(["commands", "--with-output", "--json", "--pid", str(CC)]) == 0
    (entry,) = json.loads(capfd.readouterr().out)["entries"]
    assert entry["written"] == [
        {"descriptor": 2, "cut_bytes": 0, "text": "first\n"},
        {"descriptor": 2, "cut_bytes": 9, "text": "\x1b[31mbad\x1b[0m \x07\udcff\n"},
    ]


def test_a_summary_begins_with_what_failed(build: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert etrace(["summary"]) == 0
    first, *lines = capfd.readouterr().out.splitlines()
    assert first.startswith("failed with status 1, ")
    assert lines[:2] == ["  cc -c a.c", "    first"]
    assert lines[2:5] == ["    ", "    [9 bytes left out]", "    bad \\x07\\xff"]


def test_a_summary_says_what_interrupted_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    t = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/make", ["make"])
    t.fork(MAKE, CC).exec(CC, "/usr/bin/cc", ["cc"]).exit(CC, 130).exit(MAKE, 130)
    database_of(tmp_path, t.trace())
    monkeypatch.chdir(tmp_path)
    assert etrace(["summary"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:2] == ["the build was interrupted by signal 2 (SIGINT)", ""]
