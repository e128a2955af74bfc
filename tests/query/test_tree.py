# SPDX-License-Identifier: Apache-2.0
"""The tree of processes."""

from __future__ import annotations

from pathlib import Path

import databases
from builders import TraceBuilder
from captured_builds import told_database
from libetrace.image.file import Image

from etrace.query.classes.records import Records
from etrace.query.given.chosen import EVERYTHING, Given
from etrace.query.tree import tree

SHELL, FORK, CHILD, LAST = (n << 22 | n for n in range(1, 5))


def lines(image: Image, given: Given = EVERYTHING, n_levels: int | None = None) -> list[str]:
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
    below = Given(pids=[b"%d:1" % databases.GCC_UTIL])
    assert lines(image, below) == ["gcc -c util.c", "  cc1 util.c"]


def test_a_process_has_a_node_for_each_program_and_forks_without_one(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src")
    t.exec(SHELL, "/bin/sh", ["sh"]).fork(SHELL, FORK).open(FORK, "/src/a").fork(FORK, CHILD)
    t.exec(CHILD, "/bin/env", ["env"]).exec(CHILD, "/bin/cc", ["cc"]).exit(CHILD).exit(FORK)
    t.fork(SHELL, LAST).exec(LAST, "/bin/rm", ["rm"]).exit(LAST).exit(SHELL)
    image = told_database(tmp_path, t.trace())
    assert lines(image) == ["sh", "  sh", "    env", "    cc", "  rm"]
