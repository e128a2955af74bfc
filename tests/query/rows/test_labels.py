# SPDX-License-Identifier: Apache-2.0
"""Names of executions, and the command that each belongs to."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import TraceBuilder
from databases import capture_database, database_of, write_processed_lua
from libetrace.depend.configuration import load
from libetrace.image.file import Image
from traced_builds import trace

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query.dependencies import Walked
from etrace.query.rows.commands import nearest_commands
from etrace.query.rows.labels import Labels

RUN, OTHER = (n << 22 | n for n in (1, 2))
GCC_DIRECTORY = "/usr/lib/gcc/x86_64-linux-gnu/12"

CASES = [
    (f"{GCC_DIRECTORY}/cc1", ["cc1", "-quiet", "-D", "X", "src/lvm.c"], "cc1 lvm.c"),
    ("/usr/bin/gcc", ["gcc", "-c", "-include", "a.h", "a.c", "-o", "a.o"], "gcc a.c"),
    ("/usr/bin/gcc", ["gcc", "-o", "prog", "a.c", "b.c", "d.c"], "gcc a.c +2"),
    ("/usr/bin/gcc", ["gcc", "-o", "out/lua", "lua.o", "liblua.a"], "gcc lua"),
    ("/usr/bin/gcc", ["gcc", "--version"], "gcc --version"),
    ("/usr/bin/ccache", ["ccache", "gcc", "-c", "x.c"], "ccache x.c"),
    ("/usr/bin/as", ["as", "--64", "-o", "lvm.o", "/tmp/ccX.s"], "as lvm.o"),
    ("/usr/lib/gcc/cc1", ["cc1", "-quiet", "/tmp/w/lvm.c", "-o", "/tmp/ccX.s"], "cc1 lvm.c"),
    ("/usr/bin/ld", ["ld", "-o", "lua", "lua.o"], "ld lua"),
    ("/usr/bin/ar", ["ar", "rcu", "lib/liblua.a", "lapi.o"], "ar liblua.a"),
    ("/usr/bin/make", ["make", "-j", "8", "-C", "src", "V=1", "all", "test"], "make all test"),
    ("/usr/bin/make", ["make"], "make"),
    ("/bin/sh", ["/bin/sh", "-ec", "cd src &&\n make linux"], "sh -c cd src && make linux"),
    ("/bin/sh", ["sh", "-c", "--", "make linux"], "sh -c make linux"),
    ("/bin/sh", ["sh", "-c", "--"], "sh -c "),
    ("/bin/sh", ["/bin/sh", "./configure", "--prefix=/usr"], "sh configure"),
    ("/bin/sh", ["sh", "-c", "x" * 50], "sh -c " + "x" * 37 + "..."),
    ("/usr/bin/install", ["install", "-m", "0644", "lua.h", "/opt/include/"], "install include"),
    ("/usr/bin/python3", ["python3", "-u", "tools/gen.py", "out.h"], "python3 gen.py"),
    ("/usr/bin/uname", ["uname", "-s"], "uname -s"),
    ("/usr/bin/true", [], "true"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "argv", "name"), CASES)
def test_a_name_is_the_program_and_what_it_works_on(
    tmp_path: Path, program: str, argv: list[str], name: str
) -> None:
    t = TraceBuilder(cwd="/src").exec(RUN, program, argv).exit(RUN)
    assert Labels(database_of(tmp_path, t.trace())).of(1) == name


def _image_of_forks(folder: Path) -> Image:
    t = TraceBuilder(cwd="/src").exec(RUN, "/bin/sh", ["sh", "x"]).fork(RUN, OTHER)
    return database_of(folder, t.open(OTHER, "/src/a").exit(OTHER).exit(RUN).trace())


def test_a_child_without_a_program_is_its_parents(tmp_path: Path) -> None:
    labels = Labels(_image_of_forks(tmp_path))
    assert [labels.of(row) for row in range(3)] == ["process 1", "sh x", "sh (forked)"]
    assert [labels.program(row) for row in range(3)] == ["", "sh", "sh"]


def _labels_of(folder: Path, command: str) -> set[str]:
    """Trace a command in a folder; return the names of what programs did."""
    image = open_database(trace(folder, command, {}))
    labels = Labels(image)
    names = {labels.of(row) for row in range(image["executions"].n_rows)}
    return {name for name in names if not name.startswith("sh ") and "(forked)" not in name}


COMPILED = "echo 'int main(void) { return 0; }' > a.c; gcc -c a.c; "


@pytest.mark.parametrize("removes", ["", "; rm link.rsp"])
def test_a_link_is_named_by_its_output_and_not_by_its_response_file(
    tmp_path: Path, removes: str
) -> None:
    command = COMPILED + "echo '-o out/prog a.o' > link.rsp; mkdir out; gcc @link.rsp" + removes
    names = _labels_of(tmp_path, command)
    assert {"gcc prog", "collect2 prog", "ld prog"} <= names
    assert names & {"gcc @link.rsp", "collect2 @link.rsp", "ld @link.rsp"} == set()


def test_two_response_files_of_one_name_are_two_commands(tmp_path: Path) -> None:
    command = COMPILED + "for n in 1 2; do echo rcs lib$n.a a.o > ar.rsp; ar @ar.rsp; done"
    assert {"ar lib1.a", "ar lib2.a"} <= _labels_of(tmp_path, command)


def test_a_lost_response_file_leaves_what_was_linked(tmp_path: Path) -> None:
    command = COMPILED + "echo '-o prog a.o' > link.rsp; gcc @link.rsp"
    image = capture_database(tmp_path, ["/bin/sh", "-ec", command], tmp_path)  # without contents
    postprocess(image, load(tmp_path), ("linked", "compilations"))
    labels = Labels(open_database(tmp_path))
    names = {labels.of(row) for row in range(image["executions"].n_rows)}
    assert {"gcc prog", "collect2 prog", "ld prog"} <= names


def test_a_word_with_an_at_sign_is_no_response_file_of_other_programs(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(RUN, "/usr/bin/npm", ["npm", "@types/node"]).exit(RUN)
    assert Labels(database_of(tmp_path, t.trace())).of(1) == "npm node"


def test_bytes_of_any_kind_have_a_name(tmp_path: Path) -> None:
    t = TraceBuilder(cwd="/src").exec(RUN, "/bin/cat", [b"cat", b"a/\xff.txt"]).exit(RUN)
    assert Labels(database_of(tmp_path, t.trace())).of(1) == "cat \udcff.txt"


def test_the_lua_build(tmp_path: Path) -> None:
    image = open_database(write_processed_lua(tmp_path / "lua"))
    labels = Labels(image)
    names = {labels.of(row) for row in range(image["executions"].n_rows)}
    assert {
        "cc1 lvm.c", "gcc lvm.c", "as lvm.o", "gcc lua", "ld lua", "collect2 lua",
        "ar liblua.a", "make linux", "sh -c cd src && make linux",
    } <= names  # fmt: skip


@pytest.mark.parametrize(
    ("binary", "parent", "found"),
    [([7], [-1], 0), ([7, -1, -1], [-1, 0, 1], 0), ([-1], [-1], -1), ([-1, -1], [1, 0], -1)],
    ids=["itself", "its grandparent", "none", "a ring of parents"],
)
def test_it_is_the_nearest_that_ran_a_program(
    binary: list[int], parent: list[int], found: int
) -> None:
    executions = cast("Any", {"binary": binary, "parent": parent})
    assert nearest_commands(executions)[-1] == found


def test_the_commands_of_a_walk_end_in_a_ring_of_parents() -> None:
    executions = {"binary": [-1, -1, 7, -1], "parent": [1, 0, -1, 2]}
    closure = cast("Any", SimpleNamespace(executions=[0, 1, 3]))
    walked = Walked(cast("Any", {"executions": executions}), (), (closure,))
    assert walked.commands == [2]
