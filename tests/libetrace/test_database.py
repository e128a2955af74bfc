# SPDX-License-Identifier: Apache-2.0
"""`libetrace.nfsdb()`: loading, indexing, lists, maps, tests of paths.

The JSON that etrace_parser wrote, read by json, says what everything must be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import libetrace
import pytest
from databases import AR, CC1_MAIN, GCC_MAIN, LD, LUA_ROOT, MAKE, write_database, write_lua
from libetrace.image.file import open_image, write_image
from libetrace.image.header import SCHEMA_VERSION

import etrace

Entry = dict[str, Any]


def load(directory: Path) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    assert db.load(directory / ".nfsdb.img") is True
    return db


@pytest.fixture(scope="module")
def lua_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lua(tmp_path_factory.mktemp("lua"))


@pytest.fixture(scope="module")
def lua(lua_directory: Path) -> libetrace.nfsdb:
    return load(lua_directory)


@pytest.fixture(scope="module")
def entries(lua_directory: Path) -> list[Entry]:
    loaded: list[Entry] = json.loads((lua_directory / ".nfsdb.json").read_bytes())
    return loaded


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    return load(write_database(tmp_path_factory.mktemp("small")))


# ---- loading ----


def test_importing_libetrace_loads_nothing_else() -> None:
    code = "import sys; old = set(sys.modules); import libetrace; print(*set(sys.modules) - old)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name for name in done if not name.startswith("_")} <= {"libetrace", "importlib"}


def test_loading_needs_the_standard_library_only(lua_directory: Path) -> None:
    code = (
        "import sys, libetrace; db = libetrace.nfsdb(); db.load(sys.argv[1]);"
        "db[0].json(); db.filtered_opens(wc='*.c');"
        "own = set(sys.stdlib_module_names) | set(sys.builtin_module_names);"
        "print(*{n.partition('.')[0] for n in sys.modules} - own)"
    )
    image = str(lua_directory / ".nfsdb.img")
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, image], capture_output=True, text=True, check=True
    )
    names = {n for n in done.stdout.split() if not n.startswith(("_", "cython", "sitecustom"))}
    assert names == {"libetrace"}


def test_every_public_name_exists() -> None:
    assert all(getattr(libetrace, name) is not None for name in libetrace.__all__)
    assert libetrace.__version__ == etrace.__version__
    with pytest.raises(AttributeError, match="no attribute 'nfsbd'"):
        libetrace.nfsbd  # type: ignore[attr-defined]  # noqa: B018


def test_a_database_that_is_not_loaded_says_so() -> None:
    db = libetrace.nfsdb()
    assert (len(db), bool(db), repr(db)) == (0, False, "<nfsdb empty: 0 executions>")
    for ask in (lambda: db[0], db.opens, db.pids, lambda: db.filemap, db.filtered_opens):
        with pytest.raises(libetrace.error, match="call load"):
            ask()


def test_a_loaded_database_is_not_loaded_over(lua: libetrace.nfsdb) -> None:
    with pytest.raises(libetrace.error, match="loaded already"):
        lua.load("anything")


def test_a_missing_image_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(libetrace.error, match="cas cache"):
        libetrace.nfsdb().load(tmp_path / "x.img")


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.img").write_bytes(b"\x7fELF" * 100)
    with pytest.raises(libetrace.error, match=r"not a database image.*cas cache"):
        libetrace.nfsdb().load(tmp_path / "x.img")


def test_a_newer_image_is_refused(lua_directory: Path, tmp_path: Path) -> None:
    data = bytearray((lua_directory / ".nfsdb.img").read_bytes())
    data[8] += 1
    (tmp_path / "x.img").write_bytes(data)
    with pytest.raises(libetrace.error, match="newer etrace"):
        libetrace.nfsdb().load(tmp_path / "x.img")


def test_an_image_older_than_its_json_is_refused(tmp_path: Path) -> None:
    write_lua(tmp_path)
    (tmp_path / ".nfsdb.json").write_bytes(b"[]")
    with pytest.raises(libetrace.error, match=r"not made of .* beside it.*cas cache"):
        libetrace.nfsdb().load(tmp_path / ".nfsdb.img")


def test_an_image_that_lacks_a_table_is_refused(tmp_path: Path) -> None:
    write_image(tmp_path / "x.img", {}, [])
    with pytest.raises(libetrace.error, match="no table strings"):
        libetrace.nfsdb().load(tmp_path / "x.img")


def test_an_image_can_be_read_instead_of_mapped(lua_directory: Path, entries: list[Entry]) -> None:
    db = libetrace.nfsdb()
    db.load(lua_directory / ".nfsdb.img", no_map_memory=True, mp_safe=False, quiet=True)
    assert [entry.json() for entry in db] == entries


def test_an_open_image_is_a_database(lua_directory: Path, entries: list[Entry]) -> None:
    image = open_image(lua_directory / ".nfsdb.img")
    db = libetrace.nfsdb.from_image(image)
    image.close()  # the database keeps the mapping
    assert db[7].json() == entries[7]


def test_root_and_version_come_from_the_image(
    lua: libetrace.nfsdb, lua_directory: Path, tmp_path: Path
) -> None:
    assert (lua.source_root, lua.dbversion) == (LUA_ROOT, "")
    image = tmp_path / "x.img"
    source = open_image(lua_directory / ".nfsdb.img")
    from etrace.nfsdb.products import rewrite

    os.link(source.path, image)
    rewrite(open_image(image), [], {"version": "7"})
    assert libetrace.database_version(image) == "7"
    assert libetrace.image_version(image) == SCHEMA_VERSION


# ---- executions ----


def test_all_executions_are_those_of_the_json(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    assert len(lua) == len(entries) == 239
    assert [entry.json() for entry in lua] == entries
    assert [entry.ptr for entry in lua.iter()] == list(range(239))
    assert len(lua.iter()) == 239


def test_executions_are_found_by_position(lua: libetrace.nfsdb) -> None:
    assert lua[-1] == lua[238]
    assert lua[2:5] == [lua[2], lua[3], lua[4]]
    for position in (239, -240, 1 << 70):
        with pytest.raises(IndexError, match="of 239"):
            lua[position]


def test_executions_are_found_by_process(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    for entry in lua:
        assert lua[entry.eid] == [entry]
        pid = entry.eid.pid
        assert lua[pid,] == [e for e in lua if e.eid.pid == pid]
        assert [e.json() for e in lua[pid,]] == [e for e in entries if e["p"] == pid]
    first, second = lua[0].eid.pid, lua[-1].eid.pid
    assert lua[[(second,), (first, 0)]] == [*lua[second,], lua[0]]
    absents: list[Any] = [(5,), (first, 99), [(first,), (5,)]]
    for absent in absents:
        with pytest.raises(KeyError):
            lua[absent]
    with pytest.raises(libetrace.error, match="no execution"):
        lua[5,]


def test_executions_are_found_by_binary(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    wanted = [e for e in entries if e["b"] == "/usr/bin/as"]
    assert len(wanted) > 30
    assert [e.json() for e in lua["/usr/bin/as"]] == wanted
    assert lua[["/usr/bin/as", b"/usr/bin/ar"]] == [*lua["/usr/bin/as"], *lua["/usr/bin/ar"]]
    with pytest.raises(libetrace.error, match="/no/such"):
        lua["/no/such"]


def test_processes_and_binaries_are_listed_once(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    assert lua.pids() == sorted({e["p"] for e in entries})
    assert lua.binary_paths() == sorted({e["b"] for e in entries} - {""})


def test_threads_are_children_with_their_flag(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    wanted = [c["p"] for e in entries for c in e["c"] if c["f"] & 0x10000]
    assert lua.threads == wanted
    assert lua.thread_count == len(wanted)


# ---- opens and paths ----


def test_all_opens_are_those_of_the_json(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    wanted = [file for e in entries for file in e["o"]]
    assert [file.json() for file in lua.opens()] == wanted
    assert len(lua.opens_iter()) == len(wanted) == 3598
    assert lua.opens_paths() == sorted({file["p"] for file in wanted})


def test_the_file_map_holds_the_opens_of_each_path(
    lua: libetrace.nfsdb, entries: list[Entry]
) -> None:
    by_path: dict[str, list[Entry]] = {}
    for e in entries:
        for file in e["o"]:
            by_path.setdefault(file["p"], []).append(file)
    assert {path: [o.json() for o in opens] for path, opens in lua.filemap.items()} == by_path
    assert len(lua.filemap) == len(by_path)


def test_the_file_map_takes_lists_and_access(lua: libetrace.nfsdb) -> None:
    program, source = f"{LUA_ROOT}/src/lua", f"{LUA_ROOT}/src/lua.c"
    assert lua.filemap[[program, source]] == [*lua.filemap[program], *lua.filemap[source]]
    written = [o for o in lua.filemap[program] if o.mode & 3 == 2]
    assert lua.filemap[program, "rw"] == lua.filemap[program, 2] == written
    assert program in lua.filemap
    assert lua.filemap.has_path(os.fsencode(program))
    assert not lua.filemap.has_path("/no/such")
    with pytest.raises(libetrace.error, match="never opened"):
        lua.filemap["/no/such"]
    with pytest.raises(KeyError, match="no access"):
        lua.filemap[program, "x"]
    assert lua.filemap.get("/no/such") is None


def test_paths_are_read_written_and_renamed_as_the_json_says(
    lua: libetrace.nfsdb, entries: list[Entry]
) -> None:
    opens = [file for e in entries for file in e["o"]]
    for path in lua.opens_paths():
        own = [file for file in opens if file["p"] == path]
        assert lua.path_read(path) == any(file["m"] & 3 != 1 for file in own)
        assert lua.path_write(path) == any(file["m"] & 3 for file in own)
        assert lua.path_symlinked(path) == any("o" in file for file in own)
        assert lua.symlink_paths(path) == sorted({file["o"] for file in own if "o" in file})
        assert not lua.path_exists(path)  # nothing was looked at when it was parsed
    with pytest.raises(libetrace.error, match="never opened"):
        lua.path_exists("/no/such")


def test_existing_regular_files_are_known(small: libetrace.nfsdb) -> None:
    assert small.path_exists("/src/main.c")
    assert small.path_regular("/src/main.c")
    assert small.path_read("/src/main.o")
    assert small.path_write("/src/main.o")


# ---- products ----


def test_modules_are_listed_once_with_the_open_that_wrote_them(small: libetrace.nfsdb) -> None:
    assert small.linked_module_paths() == [("/src/hello", 1), ("/src/libutil.a", 0)]
    modules = small.linked_modules()
    assert [(o.path, o.is_write(), kind) for o, kind in modules] == [
        ("/src/hello", True, 1),
        ("/src/libutil.a", True, 0),
    ]
    assert [o.parent.eid for o, _ in modules] == [(LD, 1), (AR, 1)]


def test_a_database_without_products_has_none(lua: libetrace.nfsdb) -> None:
    assert (lua.linked_modules(), lua.linked_module_paths(), lua.pcp_list()) == ([], [], [])
    assert not any(e.is_linking() or e.has_compilations() or e.is_wrapped() for e in lua)
    assert not any(e.has_pcp() or e.pcp for e in lua)


def test_patterns_are_matched_bit_for_bit_as_the_seed_says(small: libetrace.nfsdb) -> None:
    bits = small.precompute_command_patterns(["*gcc*", *["x"] * 8, "*main.c"])
    assert bits is not None
    assert bits[GCC_MAIN, 1] == b"\x80\x40"
    assert bits[CC1_MAIN, 1] == b"\x00\x40"
    assert bits[MAKE, 1] == b"\x00\x00"
    assert bits[CC1_MAIN, 0] == b"\x80\x40"  # shows its parent's command
    assert len(bits) == len(small)
    assert small.precompute_command_patterns([]) is None


# ---- threads and processes ----


def test_threads_may_share_a_database(lua: libetrace.nfsdb, entries: list[Entry]) -> None:
    answers: list[list[Entry]] = []

    def read() -> None:
        answers.append([entry.json() for entry in lua])
        lua.filtered_opens(compiled=True)

    workers = [threading.Thread(target=read) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert answers == [entries] * 4


def test_a_forked_process_goes_on_with_the_database(lua: libetrace.nfsdb) -> None:
    expected = len(lua.filtered_paths(has_path="/src/"))
    child = os.fork()
    if child == 0:
        os._exit(0 if len(lua.filtered_paths(has_path="/src/")) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_tables_are_there_without_a_copy(lua: libetrace.nfsdb) -> None:
    opens = lua.tables["opens"]
    assert opens.n_rows == 3598
    column = memoryview(opens["size"])
    assert (column.format, column.itemsize, column.readonly) == ("q", 8, True)
    assert [file.size for file in lua.opens()] == list(column)


def test_opens_have_their_changes_as_the_json_has_them(tmp_path: Path) -> None:
    folder = write_database(tmp_path, with_changes=True)
    entries = json.loads((folder / ".nfsdb.json").read_text())
    reported = {o["p"]: o["t"] for entry in entries for o in entry["o"] if "t" in o}
    opens = [o for entry in load(folder) for o in entry.opens if o.changes]
    assert reported
    assert {o.path: o.json()["t"] for o in opens} == reported
    kinds = {kind for o in opens for kind, _, _ in o.changes}
    assert kinds == {change["k"] for changes in reported.values() for change in changes}
