# SPDX-License-Identifier: Apache-2.0
"""`etrace fleet add`: no build fails by it, and what the fleet cannot take now is sent later."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import fleets
import pytest
from databases import write_processed_lua
from fleets import ask

from etrace.cli import main
from etrace.fleet.dataset import open_dataset
from etrace.fleet.spool import spool_folder, whole_place

COUNT = "SELECT build, project FROM builds ORDER BY 1"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_processed_lua(tmp_path_factory.mktemp("lua") / "lua-5.4.4")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("ETRACE_FLEET", raising=False)
    return tmp_path


def add(database: Path, place: Path, build: str, *words: str) -> int:
    return main.etrace(
        ["fleet", "add", str(database), "--fleet", str(place), "--build-id", build,
         "--no-packages", *words]
    )  # fmt: skip


def test_a_build_is_added_with_its_labels(
    database: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "f"
    words = ("--label", "commit=c1", "--label", "team=a=b", "--time", "2026-11-27T01:00:00+02:00")
    assert add(database, place, "1", "--create", *words) == 0
    assert f"build 1 is in {place}: added" in capsys.readouterr().err
    assert add(database, place, "1") == 0
    assert "there already" in capsys.readouterr().err
    sql = "SELECT project, labels, CAST(time AS VARCHAR), CAST(date AS VARCHAR) FROM builds"
    assert ask(open_dataset(place), sql) == [
        ("lua-5.4.4", {"commit": "c1", "team": "a=b"}, "2026-11-26 23:00:00", "2026-11-26")
    ]
    assert not (home / "state").exists()


def test_the_variable_names_the_fleet(
    database: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main.etrace(["fleet", "add", str(database), "--build-id", "1"]) == 2
    monkeypatch.setenv("ETRACE_FLEET", str(home / "f"))
    words = ["--build-id", "1", "--create", "--no-packages", "-q", "--project", "p"]
    assert main.etrace(["fleet", "add", str(database), *words]) == 0
    assert ask(open_dataset(home / "f"), COUNT) == [("1", "p")]


def test_a_build_waits_until_the_fleet_is_in_reach(
    database: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "mount/fleet"
    spool = spool_folder(str(place), {"XDG_STATE_HOME": str(home / "state")})
    assert add(database, place, "1") == 0
    assert f"the build waits in {spool}" in capsys.readouterr().err
    assert add(database, place, "1") == 0  # waits once
    assert add(database, place, "2", "--strict") == 2
    assert not place.exists()  # an empty mount point is not filled
    assert add(database, place, "3", "--create") == 0
    assert f"2 builds of {spool} sent" in capsys.readouterr().err
    assert [row[0] for row in ask(open_dataset(place), COUNT)] == ["1", "2", "3"]
    assert list(spool.rglob("*.parquet")) == []


def test_a_fleet_takes_no_build_of_the_spool_again(
    database: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, spool = home / "f", home / "spool"
    words = ("--spool", str(spool))
    for build in ("1", "2", "3"):
        assert add(database, place, build, *words) == 0
    assert add(database, place, "1", "--create", "--no-spool") == 0
    assert add(database, place, "2") == 0
    assert main.etrace(["fleet", "forget", "--fleet", str(place), "--build-id", "2"]) == 0
    assert add(database, place, "4", *words) == 0
    assert "1 build of" in (said := capsys.readouterr().err)
    assert "2 were there already or are forgotten" in said
    assert [row[0] for row in ask(open_dataset(place), COUNT)] == ["1", "3", "4"]


@pytest.mark.parametrize("words", [(), ("--spool", "SPOOL")])
def test_fleets_of_one_name_in_two_directories_have_spools_of_their_own(
    words: tuple[str, ...], database: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tuple(str(home / "spool") if word == "SPOOL" else word for word in words)
    for name, build in (("a", "1"), ("b", "2")):
        (home / name).mkdir()
        monkeypatch.chdir(home / name)
        assert add(database, Path("f"), build, *words) == 0  # no fleet is there yet: it waits
    for name, build in (("a", "3"), ("b", "4")):
        monkeypatch.chdir(home / name)
        assert add(database, Path("f"), build, "--create", *words) == 0
    assert [row[0] for row in ask(open_dataset(home / "a/f"), COUNT)] == ["1", "3"]
    assert [row[0] for row in ask(open_dataset(home / "b/f"), COUNT)] == ["2", "4"]


def test_a_place_has_one_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "link").symlink_to(home / "real")
    local = ["real/f", "./real/f/", "real//f", "x/../real/f", "link/f", f"{home}/real/f"]
    assert {whole_place(each) for each in [*local, f"file://{home}/real/f/"]} == {
        str(home / "real/f")
    }
    same = ["s3://b/f", "s3://b/f/", "s3://KEY:SECRET@b/f", "s3://b/f?secret_key=x"]
    assert len({whole_place(each) for each in same}) == 1
    other = ["s3://b/g", "s3://c/f", "gs://b/f", "s3://b/f?endpoint_override=h:1",
             "s3://b/f?endpoint_override=h:2", "abfs://c1@a/f", "abfs://c2@a/f"]  # fmt: skip
    assert len({whole_place(each) for each in [same[0], *other]}) == len(other) + 1


def test_each_user_has_a_spool(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = spool_folder("/f", {}, home)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert spool_folder("/f", {}, home) != own
    assert spool_folder("/f", {}, home).parent == own.parent


@pytest.mark.root
def test_the_spool_of_another_user_is_not_taken(
    database: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "f"
    assert add(database, place, "1") == 0
    spool = spool_folder(str(place), {"XDG_STATE_HOME": str(home / "state")})
    os.chown(spool, 12345, 12345)
    capsys.readouterr()
    assert add(database, place, "2", "--strict") == 2
    assert f"{spool}: the spool belongs to another user" in capsys.readouterr().err
    assert add(database, place, "3", "--create") == 0
    assert "nothing of it is sent" in capsys.readouterr().err
    assert [row[0] for row in ask(open_dataset(place), COUNT)] == ["3"]


def test_a_build_of_ci_does_not_fail_by_a_fleet(
    database: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(home / "missing", home / "f", "1") == 0
    assert add(home / "missing", home / "f", "1", "--strict") == 2
    assert add(database, home / "f", "1", "--no-spool") == 0
    assert add(database, home / "f", "1", "--no-spool", "--strict") == 2
    damaged = home / "damaged"
    shutil.copytree(database, damaged)
    (damaged / ".nfsdb.img").write_bytes(b"x" * 100)
    assert add(damaged, home / "f", "1") == 0
    assert capsys.readouterr().err.count("the build is not in the fleet") == 5


@pytest.mark.parametrize(
    "words", [("--label", "x"), ("--time", "noon"), ("--redact", "("), ("--project", "..")]
)
def test_a_wrong_command_line_is_one(words: tuple[str, ...], database: Path, home: Path) -> None:
    assert add(database, home / "f", "1", "--create", *words) == 2
    assert not (home / "f").exists()


def test_command_lines_are_left_out_if_wanted(database: Path, home: Path) -> None:
    assert add(database, home / "f", "1", "--create", "--no-commands") == 0
    sql = "SELECT count(command), count(*) FROM executions"
    assert ask(open_dataset(home / "f"), sql) == [(0, 119)]
    assert fleets.BIN.is_dir()
