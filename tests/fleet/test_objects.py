# SPDX-License-Identifier: Apache-2.0
"""A fleet in an object store that speaks S3: moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fleets
import pytest
from fleets import about, ask
from libetrace.image.file import Image

from etrace.errors import NothingFoundError, UsageError
from etrace.fleet.dataset import Dataset, filling, open_dataset
from etrace.fleet.keeping import compact, forget_before, forget_build
from etrace.fleet.parts import Part, key_of
from etrace.fleet.record import Record
from etrace.fleet.redaction import Redactor
from etrace.fleet.spool import send

COUNTS = "SELECT count(*), count(DISTINCT build) FROM opens"
BUILDS = "SELECT build FROM builds ORDER BY 1"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return what the URI of a fleet has after its path."""
    with fleets.object_store() as running:
        yield running


@pytest.fixture
def place(server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URI of a fleet in a bucket of this test."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    return fleets.bucket(server, name, monkeypatch)


def filled(place: str, image: Image, *numbers: str) -> Dataset:
    dataset = open_dataset(place)
    for number in numbers:
        assert fleets.add(dataset, image, about(number))
    return dataset


def test_builds_are_added_once_and_asked(place: str, lua: Image) -> None:
    with pytest.raises(NothingFoundError):
        ask(open_dataset(place), COUNTS)
    dataset = filled(place, lua, "1", "2")
    assert not fleets.add(dataset, lua, about("1"))
    assert ask(dataset, COUNTS) == [(2 * lua["opens"].n_rows, 2)]
    sql = "SELECT count(*) FROM closures WHERE path = 'src/lvm.h' AND module = 'src/lua'"
    assert ask(dataset, sql) == [(2,)]
    assert ask(dataset, "SELECT labels FROM builds") == [({},), ({},)]


def test_a_part_without_its_manifest_is_not_read(place: str, lua: Image) -> None:
    dataset = filled(place, lua, "1", "2")
    part = min(dataset.store.parts())
    store = dataset.store.file_system()
    opens = dataset.store.file(part, "opens")
    store.delete_file(opens.replace("opens.parquet", "part.json"))
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    dataset.store.sweep(0)
    assert store.get_file_info(opens).is_file
    dataset.store.sweep(4e9)
    assert not store.get_file_info(opens).is_file
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]


def test_two_writers_of_one_build_count_once(
    place: str, lua: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = filled(place, lua, "1")
    part = next(iter(dataset.store.parts()))
    again = Part(part.version, part.project, part.date, part.name[:34])
    fill = filling(lambda: Record(lua, about("1"), Redactor(lua)))
    with monkeypatch.context() as at_once:
        at_once.setattr(type(dataset.store), "has", lambda *_: False)
        assert dataset.store.publish(again, {key_of("1"): "1"}, fill)
    assert len(list(dataset.store.parts())) == 2
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    compact(dataset)
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    assert len(list(dataset.store.parts())) == 1


def test_parts_are_joined_and_builds_forgotten(place: str, lua: Image) -> None:
    dataset = filled(place, lua, "1", "2", "3")
    assert compact(dataset) == (3, 1)
    assert len(list(dataset.store.parts())) == 1
    assert forget_build(dataset, "2") == 1
    assert ask(dataset, BUILDS) == [("1",), ("3",)]
    assert forget_before(dataset, "2027-01-01") == 1
    assert ask(dataset, BUILDS) == []


def test_a_spool_is_sent(place: str, lua: Image, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fleets.fleet_of(spool, lua, about("1"), about("2"))
    dataset = filled(place, lua, "2")
    assert send(spool, dataset) == (1, 1)
    assert ask(dataset, BUILDS) == [("1",), ("2",)]


def test_a_uri_of_nothing_known_is_refused() -> None:
    with pytest.raises(UsageError):
        open_dataset("nothing://x/y")
