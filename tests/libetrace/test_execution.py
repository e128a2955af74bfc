# SPDX-License-Identifier: Apache-2.0
"""Executions, their opens and compilations as objects: the small build of tests/databases.py."""

from __future__ import annotations

import base64
import json
from array import array
from pathlib import Path

import libetrace
import pytest
from databases import (
    AR,
    CC1_MAIN,
    COMMANDS,
    GCC_LINK,
    GCC_MAIN,
    GCC_UTIL,
    LD,
    MAKE,
    ROOT,
    write_database,
    write_lua,
)
from libetrace.image.file import NewColumn, NewTable, open_image

from etrace.nfsdb.products import StringTable, rewrite


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    """The small build, with two patterns and a wrapper of ar added."""
    directory = write_database(tmp_path_factory.mktemp("small"))
    image = open_image(directory / ".nfsdb.img")
    strings = StringTable(image)
    rows = array("I", [strings.number(b"*gcc*"), strings.number(b"*.c")])
    n = image["executions"].n_rows
    wrapper = array("i", [-1] * n)
    wrapper[11] = 1  # ar, index 1: wrapped by make
    bits = array("B", [0x80 if i % 4 == 1 else 0xC0 if i == 3 else 0 for i in range(n)])
    rewrite(
        image,
        [
            strings.table(),
            NewTable("patterns", 2, [NewColumn("string", "<u4", rows)]),
            NewTable("pattern_bits", n, [NewColumn("bits", "|u1", bits)]),
            NewTable("wrappers", n, [NewColumn("execution", "<i4", wrapper)]),
        ],
    )
    db = libetrace.nfsdb()
    db.load(directory / ".nfsdb.img")
    return db


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    db.load(write_lua(tmp_path_factory.mktemp("lua")) / ".nfsdb.img")
    return db


def one(db: libetrace.nfsdb, upid: int) -> libetrace.nfsdbEntry:
    [entry] = db[upid, 1]
    return entry


# ---- relations ----


def test_parents_and_children_are_those_of_the_forks(small: libetrace.nfsdb) -> None:
    for upid, (parent, *_) in COMMANDS.items():
        entry = one(small, upid)
        children = [child for child, command in COMMANDS.items() if command[0] == upid]
        assert entry.parent_eid == ((parent, 1) if parent > 0 else (-1, 0))
        assert entry.parent == (one(small, parent) if parent > 0 else None)
        assert [cid.pid for cid in entry.child_cids] == children
        assert [e.eid for e in entry.childs] == [(c, x) for c in children for x in (0, 1)]


def test_next_and_previous_stay_in_the_process(lua: libetrace.nfsdb) -> None:
    for before, after in zip(list(lua), list(lua)[1:], strict=False):
        same = before.eid.pid == after.eid.pid
        assert before.next == (after if same else None)
        assert after.prev == (before if same else None)
    assert (lua[0].prev, lua[-1].next) == (None, None)


def test_an_eid_is_a_key_of_the_database(lua: libetrace.nfsdb) -> None:
    for entry in lua:
        assert lua[entry.eid] == [entry]
        assert (entry.eid.pid, entry.eid.index) == entry.eid


def test_opens_of_descendants_come_parents_first(small: libetrace.nfsdb) -> None:
    entry = one(small, GCC_MAIN)
    assert (entry.opens, entry.openpaths) == ([], [])
    paths = ["/src/main.c", "/src/main.o", "/src/util.h"]
    assert entry.openpaths_with_children == paths
    assert [o.path for o in entry.opens_with_children] == paths
    assert len(one(small, MAKE).opens_with_children) == len(small.opens())


# ---- values ----


def test_an_execution_says_what_ran(small: libetrace.nfsdb) -> None:
    entry = one(small, GCC_MAIN)
    assert entry.binary == entry.bpath == "/usr/bin/gcc"
    assert entry.cwd == ROOT
    assert entry.argv == ["gcc", "-DN=1", "-UM", "-c", "main.c"]
    assert entry.command == "gcc -DN=1 -UM -c main.c"
    assert (entry.stime, entry.etime, entry.return_code) == (1010, 500, 0)
    before = small[entry.eid.pid, 0][0]
    assert (before.binary, before.bpath, before.return_code) == ("", "", None)


def test_a_relative_binary_is_joined_to_the_directory(tmp_path: Path) -> None:
    target = tmp_path / "x.img"
    entry = {"p": 1 << 22, "x": 1, "b": "bin/tool", "w": "/work", "v": ["tool"]}
    libetrace.create_nfsdb([entry], "/work", "3", [], [], target)
    db = libetrace.nfsdb()
    db.load(target)
    assert db[0].bpath == "/work/bin/tool"
    assert (db.source_root, db.dbversion) == ("/work", "3")


def test_entries_are_compared_by_place_and_hashed(lua: libetrace.nfsdb) -> None:
    first, second = lua[0], lua[1]
    assert first == lua[0]
    assert first != second
    assert first < second
    assert first <= second
    assert second > first
    assert second >= first
    assert len({lua[i] for i in (0, 1, 0)}) == 2
    assert first != 0
    with pytest.raises(TypeError):
        sorted([first, 1])  # type: ignore[type-var]
    opens = lua.opens()
    assert sorted({*opens}) == opens
    assert opens[3] in set(lua.opens())


def test_entries_of_two_databases_are_never_equal(small: libetrace.nfsdb) -> None:
    other = libetrace.nfsdb()
    other.load(small.image.path)
    assert other[0] != small[0]
    assert other.opens()[0] != small.opens()[0]


def test_entries_show_what_they_are(small: libetrace.nfsdb) -> None:
    assert repr(one(small, AR)) == f"<Execution ({AR}, 1) 'ar rcs libutil.a util.o'>"
    assert repr(one(small, AR).opens[0]) == "<Open '/src/libutil.a' w>"
    assert repr(one(small, GCC_MAIN).compilation_info) == "<Compilation of /src/main.c>"


# ---- products ----


def test_patterns_are_reported_by_number_and_by_text(small: libetrace.nfsdb) -> None:
    assert small.pcp_list() == ["*gcc*", "*.c"]
    assert (small[3].pcp_index(), small[3].pcp, small[3].has_pcp()) == (
        [0, 1], ["*gcc*", "*.c"], True,
    )  # fmt: skip
    assert (small[1].pcp_index(), small[1].pcp) == ([0], ["*gcc*"])
    assert (small[0].pcp_index(), small[0].has_pcp()) == ([], False)
    assert small[3].json()["n"] == base64.b64encode(b"\xc0").decode()


def test_a_wrapped_execution_names_its_shell(small: libetrace.nfsdb) -> None:
    entry = one(small, AR)
    assert (entry.wpid, entry.is_wrapped(), entry.json()["m"]) == (MAKE, True, MAKE)
    assert (one(small, LD).wpid, one(small, LD).is_wrapped()) == (None, False)


def test_a_linker_names_its_module(small: libetrace.nfsdb) -> None:
    entry = one(small, LD)
    assert (entry.is_linking(), entry.linked_path, entry.linked_type) == (True, "/src/hello", 1)
    assert entry.linked_file is not None
    assert entry.linked_file.path == "/src/hello"
    assert entry.linked_ptr == entry.linked_file.ptr == (entry.ptr, 0)
    assert (entry.json()["l"], entry.json()["t"]) == ("/src/hello", 1)
    other = one(small, GCC_LINK)
    assert (other.is_linking(), other.linked_path, other.linked_type, other.linked_file) == (
        False, None, None, None,
    )  # fmt: skip
    assert other.linked_ptr is None


def test_a_compilation_has_the_keys_of_the_seed(small: libetrace.nfsdb) -> None:
    entry = one(small, GCC_MAIN)
    info = entry.compilation_info
    assert info is not None
    assert info.json() == entry.json()["d"] == {
        "f": ["/src/main.c"], "i": ["/usr/include"], "d": [{"n": "N", "v": "1"}],
        "u": [{"n": "M", "v": ""}], "h": [], "s": 1, "o": ["/src/main.o"], "p": 0,
    }  # fmt: skip
    assert info.defs == [("N", "1")]
    assert (info.undefs[0].name, info.undefs[0].value) == ("M", "")
    assert (info.type, info.language, info.is_integrated()) == (1, "c", True)
    assert (info.header_paths, info.headers, info.ipaths) == ([], [], ["/usr/include"])
    assert info == entry.compilation_info
    assert len({info, entry.compilation_info}) == 1
    assert one(small, MAKE).compilation_info is None


def test_files_of_a_compilation_are_opens_of_its_processes(small: libetrace.nfsdb) -> None:
    info = one(small, GCC_MAIN).compilation_info
    assert info is not None
    assert [(o.path, o.parent.eid) for o in info.files] == [("/src/main.c", (CC1_MAIN, 1))]
    assert [(o.path, o.is_write()) for o in info.objects] == [("/src/main.o", True)]


@pytest.mark.parametrize(
    ("path", "maker"),
    [
        ("/src/main.c", GCC_MAIN),
        ("/src/main.o", GCC_MAIN),
        ("/src/util.o", GCC_UTIL),
        ("/src/libutil.a", AR),
        ("/src/hello", LD),
    ],
)
def test_an_open_names_who_made_the_file(small: libetrace.nfsdb, path: str, maker: int) -> None:
    for file in small.filemap[path]:
        assert file.opaque == one(small, maker)
        assert file.has_opaque_entry()


def test_an_open_of_a_plain_file_has_no_maker(small: libetrace.nfsdb) -> None:
    [file] = small.filemap["/src/Makefile"]
    assert (file.opaque, file.has_opaque_entry(), file.is_plain()) == (None, False, True)


def test_an_open_says_what_its_mode_says(small: libetrace.nfsdb) -> None:
    [read] = small.filemap["/src/main.c"]
    assert (read.mode, read.is_read(), read.is_write()) == (0x60, True, False)
    assert (read.exists(), read.is_reg(), read.is_dir(), read.is_symlink()) == (
        True, True, False, False,
    )  # fmt: skip
    assert not any((read.is_chr(), read.is_block(), read.is_fifo(), read.is_socket()))
    assert (read.size, read.original_path, read.path_modified()) == (100, "/src/main.c", False)
    assert read.ptr == (one(small, CC1_MAIN).ptr, 0)
    assert read.close_timestamp - read.open_timestamp == 5


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (0x44, "is_fifo"), (0x48, "is_chr"), (0x50, "is_dir"), (0x58, "is_block"),
        (0x60, "is_reg"), (0x68, "is_symlink"), (0x70, "is_socket"), (0x20, ""),
    ],
)  # fmt: skip
def test_the_type_of_a_file_is_that_of_the_seed(tmp_path: Path, mode: int, kind: str) -> None:
    entry = {"p": 1 << 22, "x": 1, "b": "/b", "w": "/", "v": [], "o": [{"p": "/f", "m": mode}]}
    libetrace.create_nfsdb([entry], "/", "", [], [], tmp_path / "x.img")
    db = libetrace.nfsdb()
    db.load(tmp_path / "x.img")
    [file] = db[0].opens
    names = (
        "is_fifo", "is_chr", "is_dir", "is_block", "is_reg", "is_symlink", "is_socket",
    )  # fmt: skip
    assert [name for name in names if getattr(file, name)()] == ([kind] if kind else [])
    assert file.exists() == bool(kind)


def test_json_of_an_entry_is_that_of_the_file_that_made_it(small: libetrace.nfsdb) -> None:
    raw = json.loads((small.image.path.parent / ".nfsdb.json").read_bytes())
    products = {"n", "m", "d", "l", "t"}
    for entry, expected in zip(small, raw, strict=True):
        own = {key: value for key, value in entry.json().items() if key not in products}
        assert {key: own[key] for key in expected} == expected
