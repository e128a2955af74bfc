# SPDX-License-Identifier: Apache-2.0
"""Which shell wraps which execution: the rule, case by case, and against a slow second answer."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from libetrace.depend.configuration import Config, load
from libetrace.depend.execution_facts import wrapping_shells
from libetrace.image.file import Image

from etrace.nfsdb.products import StringTable
from etrace.postprocess.run import Work, say_nothing
from etrace.postprocess.wrappers import PHASE, runs_shell, shell_patterns
from etrace.spec.database import NONE

BASH, DASH, ZSH = "/usr/bin/bash", "/usr/bin/dash", "/opt/my shells/zsh"
MAKE, SH, CAT, SORT, INNER, BELOW = range(100, 106)


def wrapped(image: Image, config: Config | None = None) -> dict[tuple[int, int], tuple[int, int]]:
    """Run the phase: (upid, index) of each wrapped execution -> that of its shell."""
    work = Work(image, StringTable(image), config or load(Path()), 1, say_nothing)
    out = PHASE.run(work)[0].columns[0].data
    executions = image["executions"]
    keys = list(zip(executions["upid"], executions["index"], strict=True))
    return {keys[row]: keys[shell] for row, shell in enumerate(out) if shell != NONE}


def test_the_processes_of_a_pipeline_belong_to_its_shell(tmp_path: Path) -> None:
    t = TraceBuilder().exec(MAKE, "/usr/bin/make").fork(MAKE, SH)
    t.exec(SH, "/usr/bin/sh", ["/bin/sh", "-c", "cat a | sort > out"])
    t.fork(SH, CAT).fork(SH, SORT).exec(CAT, "/usr/bin/cat").exec(SORT, "/usr/bin/sort")
    t.exit(CAT).exit(SORT).exit(SH).exit(MAKE)
    image = database_of(tmp_path, t.trace())
    assert wrapped(image) == {
        (CAT, 0): (SH, 1), (CAT, 1): (SH, 1), (SORT, 0): (SH, 1), (SORT, 1): (SH, 1)
    }  # fmt: skip


def nested(tmp_path: Path, outer: str, inner: str) -> Image:
    t = TraceBuilder().exec(SH, outer, [outer, "build.sh"]).fork(SH, MAKE)
    t.exec(MAKE, "/usr/bin/make").fork(MAKE, INNER).exec(INNER, inner, [inner, "-c", "gcc -c a.c"])
    t.fork(INNER, BELOW).exec(BELOW, "/usr/bin/gcc")
    return database_of(tmp_path, t.exit(BELOW).exit(INNER).exit(MAKE).exit(SH).trace())


def test_the_nearest_shell_wraps_and_the_same_shell_inside_stands_alone(tmp_path: Path) -> None:
    assert wrapped(nested(tmp_path, BASH, BASH)) == {
        (MAKE, 0): (SH, 1), (MAKE, 1): (SH, 1), (BELOW, 0): (INNER, 1), (BELOW, 1): (INNER, 1)
    }  # fmt: skip


def test_another_shell_inside_belongs_to_the_outer_one(tmp_path: Path) -> None:
    assert wrapped(nested(tmp_path, BASH, ZSH)) == {
        (MAKE, 0): (SH, 1), (MAKE, 1): (SH, 1), (INNER, 0): (SH, 1), (INNER, 1): (SH, 1),
        (BELOW, 0): (INNER, 1), (BELOW, 1): (INNER, 1),
    }  # fmt: skip


def test_what_a_shell_became_by_exec_goes_on_to_wrap(tmp_path: Path) -> None:
    """`sh -c 'gcc -c a.c'`: whether sh forks for gcc or becomes it makes no difference for cc1."""
    t = TraceBuilder().exec(SH, DASH, ["sh", "-c", "gcc -c a.c"]).exec(SH, "/usr/bin/gcc")
    t.fork(SH, BELOW).exec(BELOW, "/usr/lib/cc1").exit(BELOW).exit(SH)
    assert wrapped(database_of(tmp_path, t.trace())) == {
        (BELOW, 0): (SH, 1), (BELOW, 1): (SH, 1)
    }  # fmt: skip


def test_a_shell_wraps_from_its_exec_on(tmp_path: Path) -> None:
    t = TraceBuilder().exec(SH, "/usr/bin/make").fork(SH, CAT).exec(CAT, "/usr/bin/cat").exit(CAT)
    t.exec(SH, DASH).fork(SH, SORT).exec(SORT, "/usr/bin/sort").exit(SORT).exit(SH)
    assert wrapped(database_of(tmp_path, t.trace())) == {
        (SORT, 0): (SH, 2), (SORT, 1): (SH, 2)
    }  # fmt: skip


def test_a_subshell_without_an_exec_belongs_to_its_shell_and_so_do_its_children(
    tmp_path: Path,
) -> None:
    t = TraceBuilder().exec(SH, BASH).fork(SH, INNER).fork(INNER, BELOW)
    t.exec(BELOW, "/usr/bin/cat").exit(BELOW).exit(INNER).exit(SH)
    assert wrapped(database_of(tmp_path, t.trace())) == {
        (INNER, 0): (SH, 1), (BELOW, 0): (SH, 1), (BELOW, 1): (SH, 1)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "is_one"),
    [
        (["sh", "-c", "true"], True),
        (["/bin/busybox", "ash", "-c", "true"], True),
        (["-sh"], True),
        (["busybox", "cat", "sh"], False),
        (["cat", "sh"], False),
        (["busybox"], False),
        ([], False),
    ],
)
def test_busybox_is_a_shell_when_it_is_run_as_one(argv: list[str], is_one: bool) -> None:
    assert runs_shell([text.encode() for text in argv]) is is_one


def test_busybox_wraps_as_a_shell_and_not_as_another_applet(tmp_path: Path) -> None:
    box = "/opt/bin/busybox"
    t = TraceBuilder().exec(SH, box, ["busybox", "sh", "run"]).fork(SH, MAKE)
    t.exec(MAKE, box, ["xargs", "cat"]).fork(MAKE, CAT).exec(CAT, box, ["cat"])
    t.exit(CAT).exit(MAKE).exit(SH)
    assert wrapped(database_of(tmp_path, t.trace())) == {
        (MAKE, 0): (SH, 1), (MAKE, 1): (SH, 1), (CAT, 0): (SH, 1), (CAT, 1): (SH, 1)
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", ["/bin/sh", "/usr/bin/dash", "/nix/store/x-zsh-5.9/bin/zsh", "/usr/local/bin/bash"]
)
def test_shells_are_known_under_any_path(path: str) -> None:
    assert any(shell_patterns(load(Path()).rbm_wrapping_binaries).match(path.encode()))


def test_a_listed_path_counts_as_what_it_is_on_this_machine() -> None:
    assert Path("/bin").is_symlink()
    patterns = shell_patterns(["/bin/sh"])
    assert any(patterns.match(b"/usr/bin/sh"))
    assert not any(patterns.match(b"/usr/local/bin/sh"))


def test_parents_in_a_ring_end() -> None:
    out = array("i", [7] * 3)
    wrapping_shells(
        array("q", [1, 2, 3]), array("i", [1, 2, 0]), array("i", [0] * 3), b"\0\0\0", out
    )
    assert list(out) == [NONE] * 3


@pytest.mark.parametrize("parent", [[-2], [1], [1 << 30]])
def test_a_parent_that_is_no_row_is_an_error(parent: list[int]) -> None:
    with pytest.raises(ValueError, match="row 0: parent"):
        wrapping_shells(
            array("q", [1]), array("i", parent), array("i", [0]), b"\0", array("i", [0])
        )


def test_columns_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        wrapping_shells(array("q", [1]), array("i"), array("i", [0]), b"\0", array("i", [0]))


def slow_answer(
    upid: Sequence[int], parent: Sequence[int], binary: Sequence[int], shell: Sequence[int]
) -> list[int]:
    """Follow each process upwards, row by row, as docs/postprocess.md words it."""

    def rows(row: int) -> list[int]:
        return [other for other in range(len(upid)) if upid[other] == upid[row]]

    def wrapper(row: int, seen: frozenset[int]) -> int:
        start = parent[rows(row)[0]]
        if start == NONE or upid[start] in seen:
            return NONE
        shells = [other for other in rows(start) if other <= start and shell[other]]
        found = shells[-1] if shells else wrapper(start, seen | {upid[start]})
        same = any(shell[o] and binary[o] == binary[found] for o in rows(row))
        return NONE if found == NONE or same else found

    return [wrapper(row, frozenset({upid[row]})) for row in range(len(upid))]


@pytest.mark.parametrize("seed", range(30))
def test_random_forests_come_out_as_the_slow_answer(seed: int) -> None:
    chance = random.Random(seed)
    upid = sorted(chance.randrange(30) for _ in range(60))
    first = [upid.index(each) for each in upid]
    # a parent is in an earlier process or, as upids may, in a later one without a ring
    order = list(dict.fromkeys(upid))
    chance.shuffle(order)
    rank = {each: place for place, each in enumerate(order)}
    parent: list[int] = []
    for row in range(60):
        if row != first[row]:
            parent.append(parent[first[row]])
            continue
        above = [o for o in range(60) if rank[upid[o]] < rank[upid[row]]]
        parent.append(chance.choice([*above, NONE]))
    binary = [chance.randrange(4) for _ in range(60)]
    shell = [int(each < 2 and chance.random() < 0.6) for each in binary]
    out = array("i", bytes(240))
    wrapping_shells(array("q", upid), array("i", parent), array("i", binary), bytes(shell), out)
    assert list(out) == slow_answer(upid, parent, binary, shell)
