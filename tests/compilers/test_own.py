# SPDX-License-Identifier: Apache-2.0
"""Compilers that a user describes, from the file to compile_commands.json."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from compiling import CREATE, BuildTeller, write_database

from etrace.compilers import own
from etrace.compilers.tools import Tools, load
from etrace.errors import SpecError

CAS = Path(sysconfig.get_path("scripts")) / "cas"
GCC: dict[str, Any] = {"kind": "compiler", "names": ["gcc"], "probe": True}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "etrace/compilers"
    path.mkdir(parents=True)
    own.files.cache_clear()
    return path


def describe(folder: Path, text: str) -> None:
    (folder / "mine.toml").write_text(text)
    (folder / "mine.toml").chmod(0o600)
    own.files.cache_clear()


def cas(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CAS, *words], cwd=folder, capture_output=True, text=True, check=False)


def test_an_unknown_compiler_is_reported_described_and_found(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "db"
    place.mkdir()
    build = BuildTeller()
    for upid, name in ((10, "avr32-vc-1.2"), (11, "vcc")):
        build.run(upid, f"/opt/bin/{name}", f"{name} -chip x.c -c a.c -o a.o",
                 reads=["/src/a.c"], writes=["/src/a.o"]).end(upid)  # fmt: skip
    write_database(place, build.trace())
    assert cas(place, "pp").returncode == 0
    done = cas(place, "export", "compile_commands")
    assert json.loads(done.stdout) == []
    assert done.stderr == (
        "cas: no entries: 3 programs ran; these compiled, but are not known:"
        " /opt/bin/avr32-vc-1.2 (1), /opt/bin/vcc (1)\n"
        "  hint: describe a compiler in $XDG_CONFIG_HOME/etrace/compilers/NAME.toml, then: cas pp;"
        " see docs/exports.md\n"
    )
    describe(
        folder,
        '[vc]\nextends = "gcc"\nnames = ["vc"]\n[vc.options]\nother = ["-chip ARG"]\n'
        '[cross]\nprefixes = ["avr32"]\n',
    )
    assert cas(place, "pp").returncode == 0  # runs again: what it knows has changed
    done = cas(place, "export", "compile_commands")
    assert [(each["arguments"][0], each["file"]) for each in json.loads(done.stdout)] == [
        ("avr32-vc-1.2", "/src/a.c")
    ]
    unknown = "1 call of unknown compilers: /opt/bin/vcc (1)"
    assert f"cas: no entries for {unknown}" in done.stderr
    done = cas(place, "compiled")
    assert done.stdout == "/src/a.c\n"
    assert done.stderr.splitlines()[0] == f"cas: not listed: {unknown}"
    assert cas(place, "compiled", "--path", "/src/a.c").stderr == ""
    assert cas(place, "compiled", "--commands", "--count").stdout == "1\n"


def test_a_compiler_inside_another_program_is_reported(tmp_path: Path) -> None:
    build = BuildTeller().run(10, "/usr/bin/java", "java org.apache.tools.ant.Main").thread(10, 11)
    build.use(11, "/src/A.java").use(11, "/src/A.class", flags=CREATE).exit(11, 0).exit(10, 0)
    write_database(tmp_path, build.trace())
    assert cas(tmp_path, "pp").returncode == 0
    inside = "Ant in /usr/bin/java (1)"
    done = cas(tmp_path, "compiled")
    assert done.stdout == ""
    assert f"not listed: 1 source compiled inside another program: {inside}" in done.stderr
    done = cas(tmp_path, "export", "compile_commands")
    assert f"no entries: 2 programs ran; these compiled sources inside: {inside}" in done.stderr


def test_a_users_name_wins_and_nothing_of_it_is_run(folder: Path) -> None:
    describe(folder, '[mine]\nextends = "gcc"\nnames = ["gcc"]\nprobe = true\n')
    tools = Tools({"gcc": GCC}, own.tables())
    found = tools.find_name(b"/usr/bin/gcc")
    assert found is not None
    assert (found.name, found.settings["probe"]) == ("mine", False)


def test_without_files_the_tools_are_those_of_etrace(folder: Path) -> None:
    assert (own.tables(), own.digest()) == ({}, "")
    assert load()["gcc"].settings["probe"] is True


@pytest.mark.parametrize("base", ["", "relative"])
def test_the_directory_is_that_of_the_xdg_specification(
    monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", base)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert own.directory() == Path("/home/somebody/.config/etrace/compilers")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x", "mine.toml: "),
        ('x = "y"', "x is not a table"),
        ("[x]\nnames = 'x'", "x.names must be a list of strings"),
        ("[x]\nnames = [1]", "x.names must be a list of strings"),
        ("[x]\nextends = 1", "x.extends must be a string"),
        ("[x]\noptions = 1", "x.options is not a table"),
        ("[x.options]\noutput = '-o'", "x.options.output must be a list of strings"),
        ("\xff", "mine.toml: "),
    ],
)
def test_what_is_wrong_in_a_file_is_named(folder: Path, text: str, message: str) -> None:
    (folder / "mine.toml").write_bytes(text.encode("latin-1"))
    (folder / "mine.toml").chmod(0o600)
    with pytest.raises(SpecError, match=message):
        own.tables()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[gcc]\nnames = ["x"]', "gcc is a tool of etrace"),
        ('[x]\nextends = "nothing"', "x extends nothing: no such tool"),
        ("[x]\nnames = ['x']", "x: kind is not one of"),
        ('[cross]\nprefixes = ["("]', "cross.prefixes"),
        ('[x]\nextends = "gcc"\nnames = ["v"]\n[y]\nextends = "gcc"\nnames = ["v"]', "v is both"),
    ],
)
def test_what_contradicts_the_tools_of_etrace_is_named(
    folder: Path, text: str, message: str
) -> None:
    describe(folder, text)
    with pytest.raises(SpecError, match=message):
        Tools({"gcc": GCC}, own.tables())


def test_a_file_that_others_can_write_is_refused(folder: Path) -> None:
    describe(folder, "")
    (folder / "mine.toml").chmod(0o622)
    with pytest.raises(SpecError, match="can be written by others"):
        own.tables()


@pytest.mark.root
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    describe(folder, "")
    os.chown(folder / "mine.toml", 12345, -1)
    with pytest.raises(SpecError, match="belongs to another user"):
        own.tables()
