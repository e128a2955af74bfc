# SPDX-License-Identifier: Apache-2.0
"""`cas deps` and its relatives: which kinds of files they show."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import databases
import pytest
from databases import write_database
from libetrace.image.file import NewColumn, NewTable

from etrace.cli.main import cas
from etrace.nfsdb.products import rewrite
from etrace.nfsdb.store import open_database

#: kinds of what the golden build's src/lua was made of; its tree is gone
KINDS = {
    "source": 33,
    "header": 148,
    "object": 38,
    "library": 12,
    "tool": 27,
    "temporary": 35,
    "directory": 1,
}
HIDDEN = "cas: 231 of 294 files; not shown: 27 tool, 35 temporary, 1 directory (--all, --kind)\n"


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_processed_lua(tmp_path_factory.mktemp("lua"))


def ask(lua: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    status, shown = cas([*words, "--dbdir", str(lua)]), capsys.readouterr()
    assert status == (0 if shown.out else 1)
    return shown.out.splitlines(), shown.err


def test_what_goes_into_a_program_is_shown_and_the_rest_counted(
    lua: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths, reported = ask(lua, capsys, "deps", "src/lua")
    assert reported == HIDDEN
    assert len(paths) == sum(n for kind, n in KINDS.items() if f" {kind}" not in HIDDEN)
    assert not [path for path in paths if path.startswith(("/tmp/cc", "/etc", "/usr/lib/locale"))]


def test_all_files_are_what_they_were(lua: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(lua, capsys, "deps", "src/lua", "--all", "-l") == (["294"], "")
    assert sum(KINDS.values()) == 294


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_one_kind(lua: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert ask(lua, capsys, "deps", "src/lua", "--kind", kind, "-l") == ([str(KINDS[kind])], "")


def test_several_kinds_and_one_that_is_none(lua: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ask(lua, capsys, "deps", "src/lua", "--kind", "source,header", "-l")
    assert both == ([str(KINDS["source"] + KINDS["header"])], "")
    with pytest.raises(SystemExit):
        cas(["deps", "src/lua", "--kind", "sauce"])
    assert "no kind 'sauce': there are source, header, " in capsys.readouterr().err


def test_details_have_the_kind_and_are_as_many(
    lua: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,), _ = ask(lua, capsys, "deps", "src/lua", "--all", "--programs", "-l")
    words = ["deps", "src/lua", "--all", "--programs", "--details", "--json", "--dbdir", str(lua)]
    assert cas(words) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert len(entries) == int(text)
    kinds = {each["filename"]: each["kind"] for each in entries}
    assert {kinds[each["filename"]] for each in entries if each["access"] is None} == {"tool"}
    assert kinds["/tmp/b/lua-5.4.4/src/lapi.c"] == "source"


def test_modules_that_a_header_went_into(lua: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modules, reported = ask(lua, capsys, "rdeps", "lua.h", "-R")
    assert (modules, reported) == (["src/liblua.a", "src/lua", "src/luac"], "")
    objects, reported = ask(lua, capsys, "rdeps", "lua.h", "-R", "--kind", "object")
    assert (len(objects), reported) == (34, "")
    assert "src/lapi.o" in objects


def test_a_graph_shows_the_same_files(lua: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, _ = ask(lua, capsys, "deps", "src/lua", "--dot")
    whole, _ = ask(lua, capsys, "deps", "src/lua", "--dot", "--all")
    text = "\n".join(graph)
    assert "ld.so.cache" not in text
    assert "/tmp/cc" in text  # on the way from a source to its object
    assert "ld.so.cache" in "\n".join(whole)


def test_what_ar_loads_to_run_is_no_library_of_an_archive(
    lua: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(lua, capsys, "deps", "src/liblua.a", "--kind", "library") == ([], "")
    tools, _ = ask(lua, capsys, "deps", "src/liblua.a", "--kind", "tool")
    assert "/usr/lib/x86_64-linux-gnu/libc.so.6" in tools


@pytest.mark.parametrize("command", ["deps", "rdeps", "moddeps", "why"])
@pytest.mark.parametrize(
    ("table", "column", "code"),
    [
        ("paths", "string", "I"), ("strings", "start", "Q"), ("opens", "path", "I"),
        ("opens", "execution", "I"), ("path_opens", "open", "I"), ("paths", "opens.start", "Q"),
        ("executions", "binary", "i"), ("executions", "opens.start", "Q"),
    ],
)  # fmt: skip
def test_a_damaged_image_is_an_error_or_another_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, table: str, column: str,
    code: str,
) -> None:  # fmt: skip
    image = open_database(write_database(tmp_path / "build"))
    old = image[table]
    bad = array(code, [0x7FFFFFF0]) * len(old[column])
    columns = [
        NewColumn(name, info.dtype, bad if name == column else old[name])
        for name, info in old.infos.items()
    ]
    rewrite(image, [NewTable(table, old.n_rows, columns)])
    files = ["/src/hello", "/src/util.h"][: 2 if command == "why" else 1]
    status = cas([command, *files, "--dbdir", str(tmp_path / "build")])
    reported = capsys.readouterr().err
    assert status == 0 or reported.startswith("cas: error: ")
