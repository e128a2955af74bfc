# SPDX-License-Identifier: Apache-2.0
"""A fleet in a directory: parts appear whole, builds count once, versions are read together."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fleets
import pytest
from fleets import about, ask, fleet_of
from libetrace.image.file import Image

from etrace.errors import EtraceError, NothingFoundError, UsageError
from etrace.fleet import dataset as datasets
from etrace.fleet import duck, schema
from etrace.fleet.dataset import Range, check_name, open_dataset
from etrace.fleet.duck import Duck
from etrace.fleet.parts import Part, key_of, read_part, resolve
from etrace.fleet.record import LEFT_OUT, Record
from etrace.fleet.redaction import Redactor
from etrace.query.dependencies import deps
from etrace.query.linked_modules import linked_modules
from etrace.query.rows.file_kinds import FileKinds

COUNTS = "SELECT count(*), count(DISTINCT build) FROM opens"


def test_a_build_has_all_its_rows(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1", commit="c1"))
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    assert ask(dataset, "SELECT commands, opens, modules, labels['commit'] FROM builds") == [
        (119, lua["opens"].n_rows, 3, "c1")
    ]
    assert ask(dataset, "SELECT count(*) FROM executions") == [(119,)]
    assert ask(dataset, "SELECT count(*), any_value(compiler) FROM compilations") == [
        (34, "/usr/bin/gcc")
    ]
    modules = ask(dataset, "SELECT path FROM modules WHERE copy_of IS NULL ORDER BY path")
    names = {lua.path_string(module.path) for module in linked_modules(lua)}
    assert {f"/tmp/b/lua-5.4.4/{path}".encode() for (path,) in modules} == names


def test_a_closure_is_that_of_cas_deps(lua: Image, tmp_path: Path) -> None:
    from libetrace.depend.configuration import Rules
    from libetrace.depend.dependencies import Dependencies

    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    sql = "SELECT path FROM closures WHERE module = 'src/lua' AND kind <> 'program'"
    found = {path for (path,) in ask(dataset, sql)}
    walked = deps(Dependencies(lua), [b"/tmp/b/lua-5.4.4/src/lua"], Rules())
    kinds, rows = FileKinds(lua), range(lua["paths"].n_rows)
    left_out = {lua.path_string(row) for row in rows if kinds.of(row) in LEFT_OUT}
    wanted = {
        path.decode().removeprefix("/tmp/b/lua-5.4.4/") for path in walked if path not in left_out
    }
    assert found == {path for path in wanted if not path.startswith("src/st")}
    programs = "SELECT path FROM closures WHERE module = 'src/lua' AND kind = 'program'"
    assert {path.rpartition("/")[2] for (path,) in ask(dataset, programs)} == {
        "gcc", "cc1", "as", "ar", "ranlib", "ld"
    }  # fmt: skip


def test_a_build_that_is_added_twice_counts_once(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"), about("2"))
    assert not fleets.add(dataset, lua, about("1"))
    assert not fleets.add(dataset, lua, about("1", day=9))  # on another day
    assert ask(dataset, COUNTS) == [(2 * lua["opens"].n_rows, 2)]


def test_parts_of_the_same_build_count_once(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    other = Part(schema.VERSION, "lua", "2026-11-09", f"b-{key_of('1')}")
    fill = datasets.filling(lambda: Record(lua, about("1", day=9), Redactor(lua)))
    assert dataset.store.publish(other, {key_of("1"): "1"}, fill)  # as two writers at once would
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1]]
import fleets
from etrace.nfsdb.store import open_database
image = open_database(Path(sys.argv[2]))
dataset = fleets.open_dataset(sys.argv[3])
for number in sys.argv[4:]:
    fleets.add(dataset, image, fleets.about(number))
"""


def test_writers_at_once_lose_and_repeat_nothing(lua: Image, tmp_path: Path) -> None:
    numbers = (["1", "2", "3"], ["3", "2", "1"])
    command = [sys.executable, "-c", WRITER, str(Path(fleets.__file__).parent),
               str(lua.path.parent), str(tmp_path / "f")]  # fmt: skip
    running = [subprocess.Popen([*command, *own]) for own in numbers]
    assert [each.wait() for each in running] == [0, 0]
    assert ask(open_dataset(tmp_path / "f"), COUNTS) == [(3 * lua["opens"].n_rows, 3)]


def test_a_writer_that_dies_leaves_nothing_that_is_read(
    lua: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"))

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", die)
    with pytest.raises(KeyboardInterrupt):
        fleets.add(dataset, lua, about("2"))
    monkeypatch.undo()
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    left = dataset.store.place + "/v1/project=lua/date=2026-11-01/.b-x.tmp"
    Path(left).mkdir()
    assert ask(dataset, COUNTS) == [(lua["opens"].n_rows, 1)]
    dataset.store.sweep(Path(left).stat().st_mtime + 1)
    assert not Path(left).exists()


def test_only_parts_of_the_range_are_read(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(
        tmp_path / "f", lua, about("1"), about("2", day=2), about("3", day=3, project="a b/%")
    )
    names = "SELECT build FROM builds ORDER BY 1"
    for wanted, found in (
        (Range(("lua",)), ["1", "2"]),
        (Range(since="2026-11-02"), ["2", "3"]),
        (Range(since="2026-11-02", until="2026-11-02"), ["2"]),
        (Range(("a b/%",)), ["3"]),
        (Range(("nothing",)), []),
    ):
        assert [row[0] for row in Duck(dataset, wanted).ask(names).rows] == found


def test_a_part_of_an_older_version_is_read(
    lua: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    table = schema.TABLES["modules"]
    newer = replace(
        table, columns=(*table.columns, schema.Column("stripped", "bool", "is new", since=2))
    )
    monkeypatch.setitem(schema.TABLES, "modules", newer)
    for module in (schema, datasets, duck):
        monkeypatch.setattr(module, "VERSION", 2)
    make = Record.make_modules

    def make_newer(self: Record) -> dict[str, object]:
        found = make(self)
        return found | {"stripped": [True] * len(found["path"])}

    monkeypatch.setattr(Record, "make_modules", make_newer)
    monkeypatch.setattr("etrace.fleet.record.arrow_schema",
                        lambda table, pa: schema.arrow_schema(table, pa, 2))  # fmt: skip
    assert fleets.add(dataset, lua, about("2"))
    sql = "SELECT build, any_value(stripped) FROM modules GROUP BY 1 ORDER BY 1"
    assert ask(dataset, sql) == [("1", None), ("2", True)]


def test_a_newer_version_is_refused(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    Path(f"{dataset.store.place}/v1").rename(f"{dataset.store.place}/v7")
    with pytest.raises(UsageError, match="version 7"):
        ask(dataset, COUNTS)


def test_what_is_not_a_fleet_is_refused(lua: Image, tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError):
        ask(open_dataset(tmp_path / "missing"), COUNTS)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="other files are there"):
        fleets.add(open_dataset(tmp_path), lua, about("1"))
    (tmp_path / "fleet.json").write_text("[]")
    with pytest.raises(EtraceError, match="not that of a fleet"):
        ask(open_dataset(tmp_path), COUNTS)
    with pytest.raises(UsageError):
        open_dataset(tmp_path / "a*")


@pytest.mark.parametrize("name", ["", "..", "x" * 201, "a\nb"])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        check_name("--project", name)


# ---- others who may write there


def test_a_link_of_another_user_is_not_followed(lua: Image, tmp_path: Path) -> None:
    """As root, a fleet in a directory of somebody else must not lead elsewhere."""
    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = Path(dataset.store.place) / "v1/project=evil"
    link.symlink_to(elsewhere)
    os.lchown(link, 65534, 65534)
    with pytest.raises(PermissionError):
        fleets.add(dataset, lua, about("2", project="evil"))
    assert list(elsewhere.iterdir()) == []
    assert ask(dataset, "SELECT count(*) FROM builds") == [(1,)]


def test_a_pipe_in_place_of_a_file_is_refused(lua: Image, tmp_path: Path) -> None:
    dataset = fleet_of(tmp_path / "f", lua, about("1"))
    path = next(Path(dataset.store.place).rglob("opens.parquet"))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(EtraceError, match="not a regular file"):
        ask(dataset, COUNTS)


def test_nobody_reads_a_fleet_who_may_not_read_the_database(lua: Image, tmp_path: Path) -> None:
    mode = lua.path.stat().st_mode
    lua.path.chmod(0o600)
    try:
        dataset = open_dataset(tmp_path / "f", [lua.path])
        assert fleets.add(dataset, lua, about("1"))
    finally:
        lua.path.chmod(mode)
    modes = {p.stat().st_mode & 0o777 for p in Path(dataset.store.place).rglob("*.parquet")}
    assert modes == {0o600}


# ---- names of parts


def test_names_of_parts_are_read_and_no_others() -> None:
    part = Part(1, "a b/c=d", "2026-11-27", "b-" + "0" * 32)
    assert read_part(part.path) == part
    for path in ("v0/project=a/date=2026-11-27/b-" + "0" * 32, "v1/project=a/date=x/b-0",
                 f"v1/project=a/date=2026-11-27/.b-{'0' * 32}.tmp"):  # fmt: skip
        assert read_part(path) is None


def test_each_build_is_read_from_one_part() -> None:
    parts = {
        Part(1, "p", "2026-11-27", f"c-{'a' * 32}"): {"k1": "1", "k2": "2", "k3": "3"},
        Part(1, "p", "2026-11-27", f"c-{'b' * 32}"): {"k3": "3", "k4": "4"},
        Part(1, "p", "2026-11-27", f"b-{'1' * 32}"): {"1" * 32: ""},
        Part(1, "p", "2026-11-28", f"b-{'1' * 32}"): {"1" * 32: ""},
    }
    found = resolve(parts, parts.__getitem__, {"k2"})
    assert [(r.part.name[:3], sorted(r.builds), sorted(r.left_out)) for r in found] == [
        ("c-a", ["k1", "k3"], ["k2"]), ("c-b", ["k4"], ["k3"]), ("b-1", ["1" * 32], []),
    ]  # fmt: skip
