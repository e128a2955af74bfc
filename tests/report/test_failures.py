# SPDX-License-Identifier: Apache-2.0
"""What the page shows of the commands that made a build fail."""

from __future__ import annotations

from pathlib import Path

from builders import TraceBuilder
from databases import database_of

from etrace.query.failures import find_failures
from etrace.query.rows.commands import Commands
from etrace.report.failures import describe

MAKE, CC = (n << 22 | n for n in (1, 2))


def test_a_failure_has_what_it_wrote_and_opened_last(tmp_path: Path) -> None:
    trace = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/make", ["make"])
    trace.fork(MAKE, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    trace.open(CC, "/src/a.c").open(CC, "/src/a.h")
    trace.written(CC, b"\x1b[31ma.h:1:\x1b[m\t\x07 bad \xff\n")
    commands = Commands(database_of(tmp_path, trace.exit(CC, 139).exit(MAKE, 2).trace()))
    (shown,) = describe(commands, find_failures(commands).commands)
    assert shown["ended"] == "signal 11 (SIGSEGV)"
    assert shown["output"] == [r"a.h:1:        \x07 bad \xff"]
    assert [each["path"] for each in shown["files"]] == ["/src/a.c", "/src/a.h"]
    assert [commands.image.string(s) for s in commands.argv(commands.rows[shown["command"]])] == [
        b"cc", b"-c", b"a.c"
    ]  # fmt: skip
