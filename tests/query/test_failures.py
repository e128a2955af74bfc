# SPDX-License-Identifier: Apache-2.0
"""Which commands made a build fail, in which order, what they wrote, and what interrupted it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of

from etrace.cli.main import cas
from etrace.query.failures import Failures, find_failures, last_lines, status_text
from etrace.query.rows.commands import Commands

MAKE, SH, GREP, CC, CONFIGURE, TRY, CC2 = (n << 22 | n for n in range(1, 8))


@pytest.fixture
def trace() -> TraceBuilder:
    """make > sh > grep fails, then cc fails; make > configure succeeds, what it tried failed."""
    t = TraceBuilder(cwd="/src")
    t.exec(MAKE, "/usr/bin/make", ["make"])
    t.fork(MAKE, CONFIGURE).exec(CONFIGURE, "/bin/sh", ["sh", "configure"])
    t.fork(CONFIGURE, TRY).exec(TRY, "/usr/bin/cc", ["cc", "try.c"])
    t.written(TRY, "try.c:1: error\n").exit(TRY, 1).exit(CONFIGURE)
    t.fork(MAKE, SH).exec(SH, "/bin/sh", ["sh", "-c", "grep x y; cc -c a.c"])
    t.fork(SH, GREP).exec(GREP, "/bin/grep", ["grep", "x", "y"]).exit(GREP, 1)
    t.fork(SH, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    return t


def commands_of(trace: TraceBuilder, where: Path) -> Commands:
    return Commands(database_of(where, trace.trace()))


def names(commands: Commands) -> list[bytes]:
    found = find_failures(commands).commands
    return [commands.program(commands.rows[number]) for number in found]


def test_the_last_command_of_a_shell_failed_the_build(trace: TraceBuilder, tmp_path: Path) -> None:
    commands = commands_of(trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2), tmp_path)
    assert names(commands) == [b"cc"]


def test_a_build_that_ends_well_has_no_failures(trace: TraceBuilder, tmp_path: Path) -> None:
    commands = commands_of(trace.exit(CC, 1).exit(SH, 0).exit(MAKE, 0), tmp_path)
    assert find_failures(commands) == Failures([])


def test_all_failures_of_make_k_count(trace: TraceBuilder, tmp_path: Path) -> None:
    trace.exit(CC, 1).exit(SH, 1)
    trace.fork(MAKE, CC2).exec(CC2, "/usr/bin/c++", ["c++", "-c", "b.cc"]).exit(CC2, 139)
    assert names(commands_of(trace.exit(MAKE, 2), tmp_path)) == [b"cc", b"c++"]


def test_the_command_itself_is_named_when_nothing_below_it_failed(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/make", ["make"]).exit(MAKE, 2)
    assert names(commands_of(t, tmp_path)) == [b"make"]


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ("make: [Makefile:2: a] Error 1 (ignored)\nmake: *** [Makefile:5: b] Error 1\n", [b"c++"]),
        ("make[1]: [a] Fehler 1 (ignoriert)\nmake[1]: *** [M:5: b] Fehler 1\n", [b"c++"]),
        ("make: *** [M:2: a] Error 1\nmake: *** [M:5: b] Error 1\n", [b"cc", b"c++"]),
        ("make: *** [M:2: a] Error 1\n", [b"c++"]),  # $(shell) started the other, and before it
        ("make: *** [M:2: a] Error 3\n", [b"cc", b"c++"]),  # of these it says nothing
        ("", [b"cc", b"c++"]),
    ],
)
def test_what_make_says_it_ignored_did_not_fail_the_build(
    trace: TraceBuilder, tmp_path: Path, said: str, failed: list[bytes]
) -> None:
    trace.exit(CC, 1).exit(SH, 1)
    trace.fork(MAKE, CC2).exec(CC2, "/usr/bin/c++", ["c++", "-c", "b.cc"]).exit(CC2, 1)
    if said:
        trace.written(MAKE, said)
    assert names(commands_of(trace.exit(MAKE, 2), tmp_path)) == failed


# ---- interruptions ----


def test_a_build_whose_first_command_ends_by_sigint_was_interrupted(
    trace: TraceBuilder, tmp_path: Path
) -> None:
    commands = commands_of(trace.exit(CC, 130).exit(SH, 130).exit(MAKE, 130), tmp_path)
    assert find_failures(commands) == Failures([], 2)


def test_what_failed_before_the_interruption_is_still_named(
    trace: TraceBuilder, tmp_path: Path
) -> None:
    trace.exit(CC, 1).exit(SH, 1)
    trace.fork(MAKE, CC2).exec(CC2, "/usr/bin/c++", ["c++", "-c", "b.cc"]).exit(CC2, 143)
    commands = commands_of(trace.exit(MAKE, 143), tmp_path)
    assert find_failures(commands).interrupted_by == 15
    assert names(commands) == [b"cc"]


def test_make_that_reports_an_interrupt_was_interrupted(
    trace: TraceBuilder, tmp_path: Path
) -> None:
    commands = commands_of(trace.exit(CC, 130).exit(SH, 130).exit(MAKE, 2), tmp_path)
    assert find_failures(commands) == Failures([], 2)


def test_a_command_that_a_signal_ended_fails_the_build(trace: TraceBuilder, tmp_path: Path) -> None:
    commands = commands_of(trace.exit(CC, 143).exit(SH, 143).exit(MAKE, 2), tmp_path)
    assert find_failures(commands).interrupted_by == 0
    assert names(commands) == [b"cc"]


@pytest.mark.parametrize(
    ("status", "text"),
    [(1, "status 1"), (128, "status 128"), (139, "signal 11 (SIGSEGV)"), (255, "status 255"),
     (192, "signal 64 (SIGRTMAX)"), (160, "signal 32")],
)  # fmt: skip
def test_a_status_is_that_of_a_signal_or_a_number(status: int, text: str) -> None:
    assert status_text(status) == text


# ---- output ----


def lines_of(commands: Commands, n_lines: int = 10) -> list[bytes]:
    return last_lines(commands, find_failures(commands).commands[0], n_lines)


def test_a_failure_shows_the_last_that_its_command_wrote(
    trace: TraceBuilder, tmp_path: Path
) -> None:
    trace.written(CC, "out\n", fd=1)
    trace.written(CC, b"\x1b[01m\x1b[Ka.c:1:\x1b[m\x1b[K bad\r\n\x1b]8;;file:///x\x1b\\li").written(
        CC, b"nk\x1b]8;;\x07\n"
    )
    commands = commands_of(trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2), tmp_path)
    assert lines_of(commands) == [b"a.c:1: bad", b"link"]
    assert lines_of(commands, 1) == [b"link"]


def test_what_is_missing_is_said(trace: TraceBuilder, tmp_path: Path) -> None:
    trace.written(CC, "first").written(CC, "last\n", cut=1234)
    commands = commands_of(trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2), tmp_path)
    assert lines_of(commands) == [b"first", b"[1,234 bytes left out]", b"last"]


def test_standard_output_is_shown_when_there_is_no_error(
    trace: TraceBuilder, tmp_path: Path
) -> None:
    trace.written(CC, "1 of 3 tests failed\n", fd=1)
    commands = commands_of(trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2), tmp_path)
    assert lines_of(commands) == [b"1 of 3 tests failed"]


def test_a_command_that_wrote_nothing_shows_what_it_started(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/python3", ["python3", "setup.py"])
    for each, text in ((TRY, "first\n"), (CC, "second\n")):
        t.fork(MAKE, each).exec(each, "/usr/bin/cc", ["cc"]).written(each, text).exit(each)
    assert lines_of(commands_of(t.exit(MAKE, 1), tmp_path)) == [b"second"]


def test_failed_commands_are_listed(
    trace: TraceBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = database_of(tmp_path, trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2).trace())
    assert cas(["commands", "--failed", "--db", str(image.path)]) == 0
    assert set(capsys.readouterr().out.splitlines()) == {
        "make", "cc try.c", "sh -c 'grep x y; cc -c a.c'", "grep x y", "cc -c a.c"
    }  # fmt: skip
