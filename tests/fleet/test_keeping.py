# SPDX-License-Identifier: Apache-2.0
"""compact and forget: fewer parts with the same rows; what is forgotten is gone for good."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import fleets
import pyarrow.parquet as pq
import pytest
from fleets import about, ask, fleet_of
from libetrace.image.file import Image

from etrace.errors import NothingFoundError, UsageError
from etrace.fleet import keeping
from etrace.fleet.dataset import Dataset, Range, open_dataset
from etrace.fleet.duck import Duck
from etrace.fleet.keeping import compact, forget_before, forget_build
from etrace.fleet.parts import key_of
from etrace.fleet.schema import TABLES
from etrace.fleet.spool import send
from etrace.fleet.store import manifest_text

ALL = {name: f"SELECT * FROM {name} ORDER BY ALL" for name in TABLES}


def everything(dataset: Dataset) -> dict[str, list[tuple[object, ...]]]:
    return {name: ask(dataset, sql) for name, sql in ALL.items()}


def builds(dataset: Dataset) -> list[str]:
    return [row[0] for row in ask(dataset, "SELECT build FROM builds ORDER BY 1")]


@pytest.fixture(scope="module")
def made(lua: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fleet") / "f"
    fleet_of(place, lua, about("1"), about("2"), about("3"), about("4", day=2))
    return place


@pytest.fixture
def fleet(made: Path, tmp_path: Path) -> Dataset:
    shutil.copytree(made, tmp_path / "f")
    return open_dataset(tmp_path / "f")


def test_compact_joins_the_parts_of_a_day(fleet: Dataset, lua: Image) -> None:
    before = everything(fleet)
    assert compact(fleet) == (3, 1)
    assert everything(fleet) == before
    assert len(list(fleet.store.parts())) == 2
    assert compact(fleet) == (0, 0)
    assert fleets.add(fleet, lua, about("5"))
    assert not fleets.add(fleet, lua, about("2"))  # it is in a larger part
    assert compact(fleet) == (2, 1)
    assert builds(fleet) == ["1", "2", "3", "4", "5"]


def test_compact_joins_the_parts_of_a_month(fleet: Dataset, lua: Image) -> None:
    before = everything(fleet)
    assert compact(fleet) == (3, 1)
    assert compact(fleet, by_month=True) == (2, 1)
    assert everything(fleet) == before
    assert [part.date for part in fleet.store.parts()] == ["2026-11"]
    for wanted, found in (
        (Range(since="2026-11-02"), ["4"]),
        (Range(until="2026-11-01"), ["1", "2", "3"]),
        (Range(since="2026-11-01", until="2026-11-30"), ["1", "2", "3", "4"]),
        (Range(since="2026-12-01"), []),
    ):
        own = Duck(fleet, wanted)
        assert [b for (b,) in own.ask("SELECT DISTINCT build FROM opens ORDER BY 1").rows] == found
        assert [b for (b,) in own.ask("SELECT build FROM builds ORDER BY 1").rows] == found
    assert not fleets.add(fleet, lua, about("4", day=2))
    assert forget_before(fleet, "2026-11-02") == 1
    assert builds(fleet) == ["4"]
    assert forget_before(fleet, "2026-12-01") == 1
    assert builds(fleet) == []


def test_an_index_says_what_manifests_say(fleet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    compact(fleet)
    place = Path(fleet.store.place)
    (index,) = place.rglob("parts.json")
    before = index.read_text()
    with monkeypatch.context() as without:
        without.setattr(type(fleet.store), "manifest", None)  # none is read
        assert builds(fleet) == ["1", "2", "3", "4"]
    for damaged in ("", "[]", '{"parts": {"v1": 3}}'):
        index.write_text(damaged)
        assert builds(fleet) == ["1", "2", "3", "4"]
    compact(fleet)
    assert index.read_text() == before
    forget_build(fleet, "2")
    assert '"2"' not in index.read_text()
    for build in ("1", "3"):
        forget_build(fleet, build)
    assert index.read_text() == '{"parts": {}}\n'


def test_rows_of_a_joined_part_are_sorted(fleet: Dataset) -> None:
    compact(fleet)
    for path in Path(fleet.store.place).rglob("*.parquet"):
        rows = pq.read_table(path)
        order = [(name, "ascending") for name in TABLES[path.stem].order]
        assert rows.equals(rows.sort_by(order)), path


def test_a_compact_that_dies_before_it_removes_counts_nothing_twice(
    fleet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(fleet)
    monkeypatch.setattr(type(fleet.store), "remove", lambda *_: None)
    compact(fleet)
    assert len(list(fleet.store.parts())) == 5
    assert everything(fleet) == before
    monkeypatch.undo()
    compact(fleet)
    assert len(list(fleet.store.parts())) == 2
    assert everything(fleet) == before


def test_a_build_that_is_added_while_compact_runs_stays(
    fleet: Dataset, lua: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = Dataset.readings
    added = iter(range(10, 20))

    def add_after(self: Dataset, *words: Any) -> Any:
        found = readings(self, *words)
        fleets.add(self, lua, about(str(next(added))))
        return found

    monkeypatch.setattr(Dataset, "readings", add_after)
    compact(fleet)
    monkeypatch.undo()
    assert builds(fleet) == ["1", "10", "11", "2", "3", "4"]


def test_large_parts_are_left_alone(fleet: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_OPENS", 7500)  # two builds
    assert compact(fleet, Range(until="2026-11-01")) == (2, 1)
    assert builds(fleet) == ["1", "2", "3", "4"]
    assert compact(fleet) == (0, 0)


@pytest.mark.parametrize("is_joined", [False, True])
def test_a_build_that_is_forgotten_is_gone(fleet: Dataset, lua: Image, is_joined: bool) -> None:
    if is_joined:
        compact(fleet)
    assert forget_build(fleet, "2") == 1
    assert builds(fleet) == ["1", "3", "4"]
    place = Path(fleet.store.place)
    found = {b for p in place.rglob("*.parquet") for b in pq.read_table(p)["build"].to_pylist()}
    assert found == {"1", "3", "4"}
    assert not any('"2"' in path.read_text() for path in place.rglob("*.json"))
    with pytest.raises(UsageError, match="for good"):
        fleets.add(fleet, lua, about("2"))
    assert forget_build(fleet, "2") == 0  # again
    with pytest.raises(NothingFoundError):
        forget_build(fleet, "77")


def test_a_build_that_is_forgotten_while_compact_runs_is_gone(
    fleet: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = keeping._merge

    def forget_first(*args: object) -> object:
        monkeypatch.undo()
        found = merge(*args)  # type: ignore[arg-type]
        forget_build(fleet, "2")  # the new part has it already
        return found

    monkeypatch.setattr(keeping, "_merge", forget_first)
    compact(fleet)
    assert builds(fleet) == ["1", "3", "4"]
    place = Path(fleet.store.place)
    found = {b for p in place.rglob("*.parquet") for b in pq.read_table(p)["build"].to_pylist()}
    assert found == {"1", "3", "4"}


def test_builds_before_a_date_are_removed(fleet: Dataset, lua: Image) -> None:
    fleets.add(fleet, lua, about("9", project="other"))
    assert forget_before(fleet, "2026-11-02", ["lua"]) == 3
    assert builds(fleet) == ["4", "9"]
    assert forget_before(fleet, "2026-11-02") == 1
    assert builds(fleet) == ["4"]
    assert fleets.add(fleet, lua, about("9", project="other"))  # not forgotten, only old


# ---- as somebody who wants more


def modes(dataset: Dataset) -> set[int]:
    """Return the rights of all files of parts and their lists."""
    found = Path(dataset.store.place, "v1").rglob("*.*")
    return {path.stat().st_mode & 0o777 for path in found if path.is_file()}


def test_what_was_private_stays_private(fleet: Dataset) -> None:
    for path in Path(fleet.store.place, "v1").rglob("*.*"):
        if path.is_file():
            path.chmod(0o600)
    compact(fleet, by_month=True)
    assert modes(fleet) == {0o600}
    forget_build(fleet, "1")
    assert modes(fleet) == {0o600}
    forget_before(fleet, "2026-11-02")
    assert (modes(fleet), builds(fleet)) == ({0o600}, ["4"])


def test_a_link_in_place_of_a_part_is_not_read(fleet: Dataset, lua: Image, tmp_path: Path) -> None:
    """Between the look at the parts and their rows somebody else may put a link there."""
    other = fleet_of(tmp_path / "private", lua, about("secret"))
    victim, target = (next(iter(each.store.parts())) for each in (fleet, other))
    readings = fleet.readings()
    place = Path(fleet.store.place, victim.path)
    shutil.rmtree(place)
    place.symlink_to(Path(other.store.place, target.path))
    os.lchown(place, 65534, 65534)
    with pytest.raises(PermissionError):
        keeping._rows(fleet, TABLES["builds"], readings)


def test_a_part_of_one_project_takes_no_builds_of_another(fleet: Dataset, lua: Image) -> None:
    before = everything(fleet)
    assert fleets.add(fleet, lua, about("5", project="evil"))
    manifest = next(Path(fleet.store.place).glob("v1/project=evil/*/*/part.json"))
    evil = manifest.parent.with_name("c-" + "0" * 32)
    manifest.parent.rename(evil)
    claimed = {key_of(each): each for each in ("1", "2", "3", "4")}
    (evil / "part.json").write_bytes(manifest_text(claimed))
    assert builds(fleet) == ["1", "2", "3", "4", "5"]
    compact(fleet)
    shutil.rmtree(evil)
    assert everything(fleet) == before


def test_the_spool_keeps_the_rights_of_each_build(lua: Image, tmp_path: Path) -> None:
    spool = fleet_of(tmp_path / "spool", lua, about("1"))
    for path in Path(spool.store.place).rglob("*.*"):
        path.chmod(0o600 if path.is_file() else 0o700)
    target = fleet_of(tmp_path / "f", lua, about("2"))
    assert send(tmp_path / "spool", target) == (1, 0)
    [private] = [p for p in target.store.parts() if p.key == key_of("1")]
    files = Path(target.store.place, private.path).iterdir()
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
