# SPDX-License-Identifier: Apache-2.0
"""Filters over columns, compared with what the same question says entry by entry.

The wildcard's oracle is the C library's fnmatch (tests/c_fnmatch.py), the expression's is re.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libetrace
import pytest
from c_fnmatch import c_fnmatch as fnmatch
from databases import (
    AR,
    CC1_MAIN,
    CC1_UTIL,
    GCC_LINK,
    GCC_MAIN,
    GCC_UTIL,
    LD,
    write_database,
    write_lua,
)
from databases import (
    LUA_ROOT as ROOT,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from libetrace.image.file import open_image
from libetrace.select.filters import filter_executions, filter_opens, filter_paths

Open = libetrace.nfsdbEntryOpenfile
Execution = libetrace.nfsdbEntry


def load(directory: Path) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    db.load(directory / ".nfsdb.img")
    return db


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    return load(write_lua(tmp_path_factory.mktemp("lua")))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> libetrace.nfsdb:
    return load(write_database(tmp_path_factory.mktemp("small")))


OPEN_ORACLES: list[tuple[dict[str, Any], Callable[[Open], bool]]] = [
    ({"path": f"{ROOT}/src/lapi.c"}, lambda o: o.path == f"{ROOT}/src/lapi.c"),
    ({"path": [f"{ROOT}/src/lapi.c", "/no/such"]}, lambda o: o.path == f"{ROOT}/src/lapi.c"),
    ({"has_path": "/src/l"}, lambda o: "/src/l" in o.path),
    ({"wc": "*/src/l?p*.[ch]"}, lambda o: fnmatch(b"*/src/l?p*.[ch]", o.path.encode())),
    ({"re": "/usr/.*h$"}, lambda o: re.match("/usr/.*h$", o.path) is not None),
    ({"re": "src/"}, lambda o: False),
    ({"has_access": 0}, lambda o: o.mode & 3 == 0),
    ({"has_access": 1}, lambda o: o.mode & 3 == 1),
    ({"has_access": 2}, lambda o: o.mode & 3 == 2),
    ({"has_access": "w"}, lambda o: o.mode & 3 == 1),
    ({"at_source_root": True}, lambda o: (o.path + "/").startswith(ROOT + "/")),
    ({"not_at_source_root": True}, lambda o: not (o.path + "/").startswith(ROOT + "/")),
    ({"binary": True}, lambda o: o.is_binary()),
    ({"plain": True}, lambda o: True),
    ({"exists": True}, lambda o: False),
    ({"file_not_exists": True}, lambda o: True),
    ({"compiled": None, "linked": False}, lambda o: True),
    ({"has_path": "lua", "negate": True}, lambda o: "lua" not in o.path),
    (
        {"has_path": "lua", "has_access": 0, "negate": True},
        lambda o: not ("lua" in o.path and o.mode & 3 == 0),
    ),
]


@pytest.mark.parametrize(("conditions", "oracle"), OPEN_ORACLES)
def test_opens_pass_a_filter_as_they_do_one_by_one(
    lua: libetrace.nfsdb, conditions: dict[str, Any], oracle: Callable[[Open], bool]
) -> None:
    wanted = [o for o in lua.opens() if oracle(o)]
    assert lua.filtered_opens(**conditions) == wanted
    assert lua.filtered_paths(**conditions) == sorted({o.path for o in wanted})
    iterator = lua.filtered_opens_iter(**conditions)
    assert (len(iterator), list(iterator)) == (len(wanted), wanted)
    assert len(lua.filtered_paths_iter(**conditions)) == len({o.path for o in wanted})


@pytest.mark.parametrize(("conditions", "oracle"), OPEN_ORACLES)
def test_what_is_negated_passes_the_others(
    lua: libetrace.nfsdb, conditions: dict[str, Any], oracle: Callable[[Open], bool]
) -> None:
    if len(conditions) == 1:
        [(name, value)] = conditions.items()
        others = [o for o in lua.opens() if not oracle(o)]
        assert lua.filtered_opens([[(name, value, True)]]) == others
        assert lua.filtered_opens([[("not", [(name, value)])]]) == others


@pytest.mark.parametrize("access", [3, 4, 5])
def test_the_access_of_all_opens_together_counts_from_3_on(
    lua: libetrace.nfsdb, access: int
) -> None:
    def together(path: str) -> int:
        read, written = lua.path_read(path), lua.path_write(path)
        return 5 if read and written else 4 if written else 3

    wanted = [path for path in lua.opens_paths() if together(path) == access]
    assert lua.filtered_paths(has_access=access) == wanted
    assert lua.filtered_paths([[("global_access", ("r", "w", "rw")[access - 3])]]) == wanted


def runs(entry: Execution, binary: str) -> bool:
    return binary in entry.binary


EXECUTION_ORACLES: list[tuple[dict[str, Any], Callable[[Execution], bool]]] = [
    (
        {"bins": ["/usr/bin/as", "/usr/bin/ar"]},
        lambda e: e.binary in {"/usr/bin/as", "/usr/bin/ar"},
    ),
    ({"bin_has_str": "gcc"}, lambda e: "gcc" in e.binary),
    ({"bin_wc": "*/[a]?"}, lambda e: fnmatch(b"*/[a]?", e.binary.encode())),
    ({"bin_re": ".*/cc1$"}, lambda e: re.match(".*/cc1$", e.binary) is not None),
    ({"cwd_has_str": "/src"}, lambda e: "/src" in e.cwd),
    ({"cwd_wc": "*/src"}, lambda e: fnmatch(b"*/src", e.cwd.encode())),
    ({"cwd_re": "/tmp/b/"}, lambda e: e.cwd.startswith("/tmp/b/")),
    ({"cmd_has_str": " -c "}, lambda e: e.eid.index > 0 and " -c " in e.command),
    (
        {"cmd_wc": "gcc * -o *.o *"},
        lambda e: e.eid.index > 0 and fnmatch(b"gcc * -o *.o *", e.command.encode()),
    ),
    ({"cmd_re": "gcc.*lapi"}, lambda e: e.eid.index > 0 and bool(re.match("gcc.*lapi", e.command))),
    ({"has_command": True}, lambda e: e.binary != ""),
    ({"has_comp_info": True}, lambda e: False),
    ({"has_linked_file": True}, lambda e: False),
    ({"cwd_at_source_root": True}, lambda e: (e.cwd + "/").startswith(ROOT + "/")),
    ({"cwd_not_at_source_root": True}, lambda e: not (e.cwd + "/").startswith(ROOT + "/")),
    ({"bin_at_source_root": True}, lambda e: e.binary.startswith(ROOT + "/")),
    ({"bin_not_at_source_root": True}, lambda e: not e.binary.startswith(ROOT + "/")),
    (
        {"bin_has_str": "gcc", "cmd_has_str": "lapi", "negate": True},
        lambda e: not ("gcc" in e.binary and e.eid.index > 0 and "lapi" in e.command),
    ),
]


@pytest.mark.parametrize(("conditions", "oracle"), EXECUTION_ORACLES)
def test_executions_pass_a_filter_as_they_do_one_by_one(
    lua: libetrace.nfsdb, conditions: dict[str, Any], oracle: Callable[[Execution], bool]
) -> None:
    wanted = [e for e in lua if oracle(e)]
    assert lua.filtered_execs(**conditions) == wanted
    iterator = lua.filtered_execs_iter(**conditions)
    assert (len(iterator), list(iterator)) == (len(wanted), wanted)


def test_executions_are_chosen_by_process_and_parent(lua: libetrace.nfsdb) -> None:
    pids = lua.pids()[3:6]
    assert lua.filtered_execs(pids=pids) == [e for e in lua if e.eid.pid in pids]
    assert lua.filtered_execs(pids=pids[0]) == lua[pids[0],]
    parent = lua[-1].parent_eid.pid
    wanted = [e for e in lua if e.parent is not None and e.parent.eid.pid == parent]
    assert lua.filtered_execs(has_ppid=parent) == wanted


# ---- or-lists of and-lists ----

ITEMS: list[tuple[Any, ...]] = [
    ("has_path", "/src/"), ("wc", "*.h"), ("has_access", 0), ("re", "/usr"), ("binary",),
    ("matches_wc", "*.c", True), ("contains_path", "lua", False), ("has_access", 3),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(ITEMS), max_size=3), min_size=1, max_size=3))
def test_groups_are_an_or_of_ands(
    lua: libetrace.nfsdb, groups: list[list[tuple[Any, ...]]]
) -> None:
    alone = {item: {o.ptr for o in lua.filtered_opens([[item]])} for g in groups for item in g}
    every = {o.ptr for o in lua.opens()}
    wanted = set().union(*(every.intersection(*(alone[i] for i in g)) for g in groups))
    assert {o.ptr for o in lua.filtered_opens(groups)} == wanted


def test_a_group_can_be_negated_as_a_whole(lua: libetrace.nfsdb) -> None:
    group: list[tuple[Any, ...]] = [("has_path", "lua"), ("has_access", 0)]
    inside = set(lua.filtered_opens([group]))
    assert lua.filtered_opens([[("not", group)]]) == [o for o in lua.opens() if o not in inside]
    assert lua.filtered_opens([[("not", group, True)]]) == lua.filtered_opens([group])
    commands: list[tuple[Any, ...]] = [("bin_has_str", "gcc"), ("cwd_has_str", "/src")]
    held = set(lua.filtered_execs([commands]))
    assert lua.filtered_execs([[("not", commands)]]) == [e for e in lua if e not in held]


def test_a_filter_and_keywords_must_both_hold(lua: libetrace.nfsdb) -> None:
    groups = [[("wc", "*.h")], [("wc", "*.c")]]
    wanted = [o for o in lua.filtered_opens(groups) if "lapi" in o.path]
    assert lua.filtered_opens(groups, has_path="lapi") == wanted
    others = [o for o in lua.filtered_opens(groups) if "lapi" not in o.path]
    assert lua.filtered_opens(groups, has_path="lapi", negate=True) == others


def test_an_empty_filter_is_none(lua: libetrace.nfsdb) -> None:
    assert lua.filtered_opens() == lua.filtered_opens([]) == lua.filtered_opens([[]]) == lua.opens()


def test_rows_are_answered_by_row(lua: libetrace.nfsdb) -> None:
    rows = filter_opens(lua, [[("wc", "*.h")]])
    assert rows.typecode == "I"
    assert list(rows) == [n for n, o in enumerate(lua.opens()) if o.path.endswith(".h")]
    assert list(filter_opens(lua, [[("wc", "*.h")]], rows[:5])) == list(rows[:5])
    assert list(filter_executions(lua, [[("has_command",)]], range(3))) == [
        n for n in range(3) if lua[n].binary
    ]
    image = open_image(lua.image.path)
    assert [
        image.path_string(path).decode() for path in filter_paths(lua, [[("wc", "*.h")]])
    ] == lua.filtered_paths(wc="*.h")
    with pytest.raises(IndexError, match="row 3598 of 3598"):
        filter_opens(lua, [], [3598])


def test_the_opens_of_one_execution_are_filtered_alike(lua: libetrace.nfsdb) -> None:
    for entry in lua:
        wanted = [o for o in entry.opens if o.path.endswith(".h") and o.mode & 3 == 0]
        assert entry.filtered_opens(wc="*.h", has_access=0) == wanted


# ---- products ----


@pytest.mark.parametrize(
    ("conditions", "paths"),
    [
        ({"compiled": True}, ["/src/main.c", "/src/util.c"]),
        ({"linked": True}, ["/src/hello", "/src/libutil.a"]),
        ({"linked_static": True}, ["/src/libutil.a"]),
        ({"linked_exe": True}, ["/src/hello"]),
        ({"linked_shared": True}, []),
        ({"source_type": 1}, ["/src/main.c", "/src/util.c"]),
        ({"source_type": "c++"}, []),
        ({"plain": True}, ["/src/Makefile", "/src/main.o", "/src/util.h", "/src/util.o"]),
        (
            {"file_filter": [[("is_class", "compiled|linked_exe")]]},
            ["/src/hello", "/src/main.c", "/src/util.c"],
        ),
        ({"compiled": True, "has_path": "main"}, ["/src/main.c"]),
        ({"file_exists": True, "wc": "*.c"}, ["/src/main.c", "/src/util.c"]),
        ({"dir_exists": True}, []),
        ({"symlink": True}, []),
        ({"no_symlink": True, "wc": "*.a"}, ["/src/libutil.a"]),
    ],
)
def test_products_make_classes_of_paths(
    small: libetrace.nfsdb, conditions: dict[str, Any], paths: list[str]
) -> None:
    assert small.filtered_paths(**conditions) == paths
    if "file_filter" not in conditions:
        others = set(small.opens_paths()) - set(paths)
        assert small.filtered_paths(**conditions, negate=True) == sorted(others)


@pytest.mark.parametrize(
    ("conditions", "upids"),
    [
        ({"has_comp_info": True}, [GCC_MAIN, GCC_UTIL]),
        ({"has_linked_file": True}, [AR, LD]),
        ({"exec_filter": [[("is_class", "compiler|linker")]]}, [GCC_MAIN, GCC_UTIL, AR, LD]),
        (
            {"exec_filter": [[("is_class", "command")]], "cmd_has_str": "c"},
            [CC1_MAIN, CC1_UTIL, GCC_LINK],
        ),
    ],
)
def test_products_make_classes_of_executions(
    small: libetrace.nfsdb, conditions: dict[str, Any], upids: list[int]
) -> None:
    assert [e.eid for e in small.filtered_execs(**conditions)] == [(upid, 1) for upid in upids]


# ---- bad filters ----


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[("paht", "x")]], "no condition 'paht'.*has_path"),
        ([[("re", "(")]], "is not a regular expression"),
        ([[("is_class", "object")]], "no class 'object'.*linked_static"),
        ([[("has_access", 6)]], "no access 6"),
        ([[("has_access", [])]], "no access"),
        ([[("global_access", 3)]], "no access 3"),
        ([[("source_type", "go")]], "no source type 'go'"),
        ([[("wc", 5)]], "expected a text"),
        ([["wc"]], "is not a condition"),
        ([[()]], "is not a condition"),
    ],
)
def test_a_bad_condition_is_named(lua: libetrace.nfsdb, groups: Any, words: str) -> None:
    with pytest.raises(libetrace.error, match=words):
        lua.filtered_opens(groups)


def test_a_bad_condition_on_executions_is_named(lua: libetrace.nfsdb) -> None:
    with pytest.raises(libetrace.error, match="expected a upid"):
        lua.filtered_execs(has_ppid="x")  # type: ignore[arg-type]
    with pytest.raises(libetrace.error, match="no class 'gcc'"):
        lua.filtered_execs([[("is_class", "gcc")]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'bin'"):
        lua.filtered_execs(bin="x")  # type: ignore[call-arg]
