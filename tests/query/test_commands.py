# SPDX-License-Identifier: Apache-2.0
"""Executions that have a program."""

from __future__ import annotations

import databases
from libetrace.image.file import Image

from etrace.query.executions import binaries, commands, execs
from etrace.query.given.chosen import Given


def test_commands_are_the_executions_with_a_program(image: Image) -> None:
    n_processes = len(databases.COMMANDS)
    assert execs(image) == list(range(2 * n_processes))
    assert commands(image) == list(range(1, 2 * n_processes, 2))


def test_commands_of_a_program(image: Image) -> None:
    upid = image["executions"]["upid"]
    rows = commands(image, Given(binaries=[b"/usr/lib/cc1"]))
    assert [upid[row] for row in rows] == [databases.CC1_MAIN, databases.CC1_UTIL]


def test_programs_that_were_run(image: Image) -> None:
    names = sorted({program.encode() for _, program, _, _ in databases.COMMANDS.values()})
    assert binaries(image) == names
    assert binaries(image, Given(paths=[b"/src/util.o"])) == [b"/usr/bin/ar", b"/usr/lib/cc1"]
