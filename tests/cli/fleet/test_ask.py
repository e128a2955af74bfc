# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet query`, `sql`, `trends`, `compact` and `forget` on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import fleets
import pytest
from fleets import about

from etrace.cli import main
from etrace.fleet.questions import questions


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("fleet")
    lua = fleets.lua(folder / "lua")
    builds = (about("1", commit="c1"), about("2", day=2, commit="c2"), about("3", 3, "other"))
    return fleets.fleet_of(folder / "f", lua, *builds).store.place


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main.etrace(["fleet", *words]) == status
    return capsys.readouterr().out


def test_fleet_alone_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, status=2)
    assert all(f"  {name} " in out for name in ("add", "query", "trends", "forget"))


def test_queries_are_listed_with_what_they_take(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "query", "--list").splitlines()
    assert len(lines) == len(questions())
    assert "products-with-file FILE\tlinked modules that a file went into, by project" in lines
    assert "WHERE c.path = :file" in printed(capsys, "query", "--show-sql", "products-with-file")


def test_an_answer_is_lines_json_or_csv(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("query", "products-with-file", "src/lvm.h", "--fleet", place, "--project", "lua")
    lines = printed(capsys, *words).splitlines()
    assert lines[0].startswith("project\tmodule\tbuilds\tfirst")
    found = json.loads(printed(capsys, *words, "--json"))
    rows = list(csv.DictReader(io.StringIO(printed(capsys, *words, "--csv"))))
    assert [row["module"] for row in found] == [row["module"] for row in rows]
    assert {(row["project"], row["builds"]) for row in found} == {("lua", 2)}


def test_days_are_chosen(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("sql", "SELECT build FROM builds", "--fleet", place)
    assert printed(capsys, *words, "--since", "2026-11-03") == "build\n3\n"
    assert printed(capsys, *words, "--until", "2026-11-01") == "build\n1\n"
    with pytest.raises(SystemExit):
        main.etrace(["fleet", *words, "--since", "yesterday"])


def test_tables_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "opens\taccess\tVARCHAR\tr, w or rw" in printed(capsys, "sql", "--tables").splitlines()


def test_a_wrong_command_line_ends_with_2(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ("query",), ("query", "--list", "x"), ("query", "nothing"), ("query", "builds", "x"),
        ("sql",), ("sql", "SELEC"), ("sql", "SELECT 1; SELECT 2"),
        ("trends", "--figure", "size"), ("trends", "--of-step", "x", "--figure", "cpu"),
        ("forget", "--build-id", "x", "--project", "y"),
    ):  # fmt: skip
        printed(capsys, *words, "--fleet", place, status=2)
    printed(capsys, "query", "builds", "--fleet", f"{place}/none", status=1)
    printed(capsys, "trends", "--of-step", "none", "--fleet", place, status=1)


def test_trends_are_plotted(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "lua.svg"
    words = ("trends", "--fleet", place, "--project", "lua", "--of-module", "src/lua",
             "--figure", "dependencies")  # fmt: skip
    out = printed(capsys, *words, "--svg", str(svg))
    assert out.startswith("dependencies of src/lua\n")
    assert out.endswith("no change beyond the noise\n")
    circles = ET.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(circles)) == 2
    found = json.loads(printed(capsys, *words, "--json"))
    assert [(p["commit"], p["mean"], p["builds"]) for p in found["points"]] == [
        ("c1", 264.0, 1), ("c2", 264.0, 1)
    ]  # fmt: skip


def test_parts_are_joined_and_builds_forgotten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lua = fleets.lua(tmp_path / "lua")
    place = fleets.fleet_of(tmp_path / "f", lua, about("1"), about("2"), about("3", 2)).store.place
    words = ("--fleet", place)
    assert main.etrace(["fleet", "compact", *words]) == 0
    assert "2 parts became 1" in capsys.readouterr().err
    assert main.etrace(["fleet", "forget", "--build-id", "1", *words]) == 0
    assert "build 1 is forgotten; it was in 1 part" in capsys.readouterr().err
    assert main.etrace(["fleet", "forget", "--before", "2026-11-02", *words]) == 0
    assert printed(capsys, "sql", "SELECT build FROM builds", *words) == "build\n3\n"
    assert main.etrace(["fleet", "forget", "--build-id", "77", *words]) == 1
