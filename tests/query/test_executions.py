# SPDX-License-Identifier: Apache-2.0
"""Executions, commands, programs and the process tree."""

from __future__ import annotations

from pathlib import Path

import databases
from builders import TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.query.executions import binaries, commands, execs, tree
from etrace.query.rows.records import Records
from etrace.query.select.selection import EVERYTHING, Selection


def test_commands_are_the_executions_with_a_program(image: Image) -> None:
    n_processes = len(databases.COMMANDS)
    assert execs(image) == list(range(2 * n_processes))
    assert commands(image) == list(range(1, 2 * n_processes, 2))


def test_commands_of_a_program(image: Image) -> None:
    upid = image["executions"]["upid"]
    rows = commands(image, Selection(binaries=[b"/usr/lib/cc1"]))
    assert [upid[row] for row in rows] == [databases.CC1_MAIN, databases.CC1_UTIL]


def test_programs_that_were_run(image: Image) -> None:
    names = sorted({program.encode() for _, program, _, _ in databases.COMMANDS.values()})
    assert binaries(image) == names
    assert binaries(image, Selection(paths=[b"/src/util.o"])) == [b"/usr/bin/ar", b"/usr/lib/cc1"]


SHELL, FORK, CHILD, LAST = (n << 22 | n for n in range(1, 5))


def lines(image: Image, given: Selection = EVERYTHING, n_levels: int | None = None) -> list[str]:
    records = Records(image)
    return [
        "  " * node.depth + " ".join(records.argv(node.execution))
        for node in tree(image, given, n_levels=n_levels)
    ]


def test_the_whole_tree(image: Image) -> None:
    assert lines(image) == [
        "make hello",
        "  gcc -DN=1 -UM -c main.c",
        "    cc1 main.c",
        "  gcc -c util.c",
        "    cc1 util.c",
        "  ar rcs libutil.a util.o",
        "  gcc -o hello main.o libutil.a",
        "    ld -o hello main.o libutil.a",
    ]


def test_it_can_be_cut_off(image: Image) -> None:
    assert lines(image, n_levels=1) == ["make hello"]
    assert len(lines(image, n_levels=2)) == 5


def test_the_tree_below_one_process(image: Image) -> None:
    below = Selection(pids=[b"%d:1" % databases.GCC_UTIL])
    assert lines(image, below) == ["gcc -c util.c", "  cc1 util.c"]


def test_a_process_has_a_node_for_each_program_and_forks_without_one(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src")
    t.exec(SHELL, "/bin/sh", ["sh"]).fork(SHELL, FORK).open(FORK, "/src/a").fork(FORK, CHILD)
    t.exec(CHILD, "/bin/env", ["env"]).exec(CHILD, "/bin/cc", ["cc"]).exit(CHILD).exit(FORK)
    t.fork(SHELL, LAST).exec(LAST, "/bin/rm", ["rm"]).exit(LAST).exit(SHELL)
    image = database_of(tmp_path, t.trace())
    assert lines(image) == ["sh", "  sh", "    env", "    cc", "  rm"]
