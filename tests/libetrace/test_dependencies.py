# SPDX-License-Identifier: Apache-2.0
"""`fdeps`, `mdeps`, `rdeps` and dependencies of another image."""

from __future__ import annotations

from pathlib import Path

import libetrace
import pytest
from databases import AR, CC1_MAIN, CC1_UTIL, LD, write_database, write_parsed

from etrace.nfsdb.store import open_database

HELLO, ARCHIVE = "/src/hello", "/src/libutil.a"
SOURCES = ["/src/main.c", "/src/util.c", "/src/util.h"]
FULL = sorted([*SOURCES, "/src/main.o", "/src/util.o", ARCHIVE])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    db.load(write_database(tmp_path_factory.mktemp("small")) / ".nfsdb.img")
    return db


def test_the_dependencies_of_a_file_are_all_that_made_it(small: libetrace.nfsdb) -> None:
    pids, paths, opens = small.fdeps(HELLO)
    assert pids == [CC1_MAIN, CC1_UTIL, AR, LD]
    assert paths == FULL
    assert {o.path for o in opens} == {*FULL, HELLO}
    assert opens == sorted(opens)


def test_direct_dependencies_stop_at_modules(small: libetrace.nfsdb) -> None:
    direct = sorted({"/src/main.c", "/src/main.o", "/src/util.h", ARCHIVE})
    assert small.fdeps(HELLO, direct=True)[1] == direct
    assert small.fdeps(HELLO, direct=True, all_modules=["/src/main.o", ARCHIVE])[1] == [
        ARCHIVE,
        "/src/main.o",
    ]


def test_excluded_files_are_listed_and_not_followed(small: libetrace.nfsdb) -> None:
    wanted = sorted({"/src/main.c", "/src/main.o", "/src/util.h", ARCHIVE})
    assert small.fdeps(HELLO, exclude_patterns=["*.a"])[1] == wanted
    assert small.fdeps(HELLO, exclude_files=[ARCHIVE])[1] == wanted
    assert (
        small.fdeps(HELLO, exclude_patterns=["*.[oa]", "*/hello"], negate_pattern=True)[1] == FULL
    )
    assert small.fdeps(HELLO, exclude_patterns=["*/hello"]) == ([], [], [])


def test_an_excluded_command_writes_nothing(small: libetrace.nfsdb) -> None:
    assert small.fdeps(HELLO, exclude_commands=["ar *"])[1] == sorted(
        {"/src/main.c", "/src/main.o", "/src/util.h", ARCHIVE}
    )
    # make's children show its command at index 0, and are not excluded with it
    assert small.fdeps(HELLO, exclude_commands=["make*"])[1] == FULL
    with pytest.raises(libetrace.error, match="pattern 0 of 0"):
        small.fdeps(HELLO, exclude_commands_index=[0])


def test_the_graph_says_who_read_what(small: libetrace.nfsdb) -> None:
    *_, graph = small.fdeps(HELLO, dep_graph=True)
    assert graph[HELLO] == ([(LD, ["/src/libutil.a", "/src/main.o"])], [ARCHIVE, "/src/main.o"])
    assert graph[ARCHIVE] == ([(AR, ["/src/util.o"])], ["/src/util.o"])
    assert graph["/src/main.o"] == ([(CC1_MAIN, ["/src/main.c", "/src/util.h"])], [])
    assert set(graph) == {HELLO, ARCHIVE, "/src/main.o", "/src/util.o"}


def test_several_files_are_one_question(small: libetrace.nfsdb) -> None:
    assert small.fdeps(["/src/main.o", "/src/util.o"])[1] == SOURCES
    assert small.fdeps("/src/main.c") == ([], [], [])  # nothing wrote it
    assert small.fdeps(HELLO, dry_run=True) == ([], [], [])
    with pytest.raises(libetrace.error, match="'/no/such' was never opened"):
        small.fdeps("/no/such")


def test_wrappers_are_asked_for_when_they_are_missing(small: libetrace.nfsdb) -> None:
    with pytest.raises(libetrace.error, match=r"no wrappers yet.*cas pp"):
        small.fdeps(HELLO, wrap_deps=True)


# ---- of modules ----


def test_dependencies_of_modules_are_walked(small: libetrace.nfsdb) -> None:
    direct = ["/src/libutil.a", "/src/main.c", "/src/main.o", "/src/util.h"]
    assert [o.path for o in small.mdeps(HELLO)] == FULL
    assert [o.path for o in small.mdeps(HELLO, direct=True)] == direct
    assert [o.is_write() for o in small.mdeps(HELLO, direct=True)] == [True, False, True, False]
    assert (small.mdeps_count(HELLO), small.mdeps_count([HELLO, ARCHIVE], direct=True)) == (6, 6)
    assert small.rdeps("/src/util.c", recursive=True) == {HELLO, ARCHIVE}
    assert small.rdeps("/src/util.c") == {ARCHIVE}
    assert small.rdeps(["/src/main.o", "/src/util.o"]) == {HELLO, ARCHIVE}
    assert small.rdeps([ARCHIVE, "/src/util.o"]) == {HELLO, ARCHIVE}


def test_what_is_no_module_is_named(small: libetrace.nfsdb, tmp_path: Path) -> None:
    with pytest.raises(libetrace.error, match="is not a linked module"):
        small.mdeps("/src/main.c")
    with pytest.raises(libetrace.error, match="never opened"):
        small.rdeps("/no/such")
    db = libetrace.nfsdb.from_image(open_database(write_parsed(tmp_path / "parsed")))
    for ask in (lambda: db.mdeps(HELLO), lambda: db.rdeps(HELLO)):
        with pytest.raises(libetrace.error, match=r"no linked modules yet.*cas pp"):
            ask()
