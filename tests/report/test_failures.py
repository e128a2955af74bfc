# SPDX-License-Identifier: Apache-2.0
"""Which commands made a build fail, what is told of them, and what is kept back."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from captured_builds import told_database
from libetrace.image.file import Image

from etrace.report.commands import Commands
from etrace.report.failures import describe, failures

MAKE, SH, GREP, CC, CONFIGURE, TRY, CC2 = (n << 22 | n for n in range(1, 8))


@pytest.fixture
def trace() -> TraceBuilder:
    """make > sh > grep fails, then cc fails; make > configure succeeds, what it tried failed."""
    t = TraceBuilder(cwd="/src")
    t.exec(MAKE, "/usr/bin/make", ["make"])
    t.fork(MAKE, CONFIGURE).exec(CONFIGURE, "/bin/sh", ["sh", "configure"])
    t.fork(CONFIGURE, TRY).exec(TRY, "/usr/bin/cc", ["cc", "try.c"]).exit(TRY, 1)
    t.exit(CONFIGURE)
    t.fork(MAKE, SH).exec(SH, "/bin/sh", ["sh", "-c", "grep x y; cc -c a.c"])
    t.fork(SH, GREP).exec(GREP, "/bin/grep", ["grep", "x", "y"]).exit(GREP, 1)
    t.fork(SH, CC).exec(CC, "/usr/bin/cc", ["cc", "-c", "a.c"])
    t.open(CC, "/src/a.c").open(CC, "/src/a.h")
    return t


def image_of(trace: TraceBuilder, where: Path) -> Image:
    return told_database(where, trace.trace())


def names(image: Image) -> list[bytes]:
    commands = Commands(image)
    return [commands.program(commands.rows[number]) for number in failures(commands)]


def test_the_last_command_of_a_shell_failed_the_build(trace: TraceBuilder, tmp_path: Path) -> None:
    trace.exit(CC, 1).exit(SH, 1).exit(MAKE, 2)
    image = image_of(trace, tmp_path)
    assert names(image) == [b"cc"]
    commands = Commands(image)
    (told,) = describe(commands)
    assert [each["path"] for each in told["files"]] == ["/src/a.c", "/src/a.h"]
    assert [image.string(s) for s in commands.argv(commands.rows[told["command"]])] == [
        b"cc", b"-c", b"a.c"
    ]  # fmt: skip


def test_a_build_that_ends_well_has_no_failures(trace: TraceBuilder, tmp_path: Path) -> None:
    trace.exit(CC, 1).exit(SH, 0).exit(MAKE, 0)
    assert names(image_of(trace, tmp_path)) == []


def test_all_failures_of_make_k_count(trace: TraceBuilder, tmp_path: Path) -> None:
    trace.exit(CC, 1).exit(SH, 1)
    trace.fork(MAKE, CC2).exec(CC2, "/usr/bin/c++", ["c++", "-c", "b.cc"]).exit(CC2, 139)
    trace.exit(MAKE, 2)
    assert names(image_of(trace, tmp_path)) == [b"cc", b"c++"]


def test_the_command_itself_is_named_when_nothing_below_it_failed(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(MAKE, "/usr/bin/make", ["make"]).exit(MAKE, 2)
    assert names(image_of(t, tmp_path)) == [b"make"]
