# SPDX-License-Identifier: Apache-2.0
"""The questions of `etrace fleet query`, and what a statement of a user may do."""

from __future__ import annotations

import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import fleets
import pytest
from builders import TraceBuilder
from databases import database_of
from fleets import about, ask, fleet_of
from libetrace.depend.configuration import load
from libetrace.image.file import Image

from etrace.errors import EtraceError, UsageError
from etrace.fleet import spark
from etrace.fleet.dataset import Dataset, open_dataset
from etrace.fleet.duck import Duck, view
from etrace.fleet.parts import Part, Reading
from etrace.fleet.questions import question, questions
from etrace.fleet.record import end_of
from etrace.fleet.schema import TABLES
from etrace.fleet.store import shown_place
from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess


@pytest.fixture(scope="module")
def fleet(lua: Image, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    place = tmp_path_factory.mktemp("fleet") / "f"
    return fleet_of(
        place, lua, about("1", commit="c1", team="a"), about("2", day=9, commit="c2", team="b")
    )


def answers(dataset: Dataset, name: str, *words: str) -> list[dict[str, Any]]:
    asked = question(name)
    rows = Duck(dataset).ask(asked.for_duckdb, asked.values(words), is_trusted=True)
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]


@pytest.mark.parametrize("name", questions())
def test_every_question_is_described_and_answered(name: str, fleet: Dataset) -> None:
    asked = question(name)
    assert asked.summary
    assert ":" not in asked.for_duckdb.replace("'pkg:%", "")
    answers(fleet, name, *(fleets.VALUES[each] for each, _ in asked.parameters))


def test_products_with_a_file(fleet: Dataset) -> None:
    found = answers(fleet, "products-with-file", "src/lvm.h")
    modules = [(row["module"], row["builds"], row["last_build"]) for row in found]
    assert ("src/lua", 2, "2") in modules
    assert ("src/luac", 2, "2") in modules
    assert answers(fleet, "products-with-file", "src/nothing.h") == []


def test_products_with_a_compiler(fleet: Dataset) -> None:
    for words in ("gcc", "/usr/bin/gcc", "cc1"):
        found = answers(fleet, "products-with-compiler", words)
        assert "src/lua" in {row["module"] for row in found}
    assert answers(fleet, "products-with-compiler", "cc") == []


def test_a_value_is_bound_and_never_a_part_of_the_statement(fleet: Dataset) -> None:
    word = "x' OR '1'='1"
    assert answers(fleet, "products-with-file", word) == []
    assert answers(fleet, "files-like", word) == []


def test_files_and_their_builds(fleet: Dataset) -> None:
    found = answers(fleet, "files-like", "%/lvm.h")
    assert found == [{"path": "src/lvm.h", "builds": 2, "contents": 0}]
    found = answers(fleet, "builds-with-file", "src/lvm.h")
    assert [(row["build"], row["commands"]) for row in found] == [("1", 8), ("2", 8)]


def test_time_by_label_and_week(fleet: Dataset) -> None:
    found = answers(fleet, "time-by-label", "team")
    weeks = [(row["week"], row["value"], row["builds"]) for row in found]
    assert weeks == [
        (datetime.date(2026, 10, 26), "a", 1), (datetime.date(2026, 11, 9), "b", 1)
    ]  # fmt: skip


def add(tree: Path, place: Path, number: str) -> None:
    """Add the build of a tree, which the command traced."""
    fleets.run(
        [str(fleets.BIN / "etrace"), "fleet", "add", "--fleet", str(place), "--create", "-q",
         "--build-id", number, "--strict", "--no-spool", "--project", "p"],
        cwd=tree,
    )  # fmt: skip


def test_what_is_different_from_the_build_before(tmp_path: Path) -> None:
    place = tmp_path / "f"
    for number, value in (("1", 0), ("2", 1), ("3", 1)):
        source = f"int f(void) {{ return {value}; }}\n"
        add(fleets.traced(tmp_path / number, "--hash", other=source), place, number)
    dataset = open_dataset(place)
    found = answers(dataset, "build-changes", "2")
    assert [(row["path"], row["change"], row["build_before"]) for row in found] == [
        ("other.c", "changed", "1")
    ]
    assert answers(dataset, "build-changes", "3") == answers(dataset, "build-changes", "1") == []


def test_builds_that_ended_in_the_same_second_have_an_order() -> None:
    traces = {"trace": {"mtime_ns": 1_795_891_355_123_456_789}}
    image = cast("Image", SimpleNamespace(attributes={"traces": traces}))
    assert end_of(image) == datetime.datetime(2026, 11, 28, 18, 42, 35, 123456)


def test_contents_packages_and_compilers_of_a_real_build(tmp_path: Path) -> None:
    tree = fleets.traced(tmp_path / "t", "--hash")
    place = tmp_path / "f"
    add(tree, place, "1")
    dataset = open_dataset(place)
    blob = fleets.run(["git", "hash-object", "main.c"], cwd=tree)[0].strip()
    found = answers(dataset, "builds-with-hash", blob.upper())
    assert [(row["build"], row["path"], row["module"]) for row in found] == [
        ("1", "main.c", "hello")
    ]
    found = answers(dataset, "products-with-package", "libc6%")
    assert {row["module"] for row in found} == {"hello"}
    assert all(row["package"].startswith("pkg:deb/debian/libc6") for row in found)
    found = answers(dataset, "compilers")
    assert [(row["language"], row["compilations"]) for row in found] == [("c", 2)]
    assert found[0]["package"].startswith("pkg:deb/debian/gcc")


def timed(folder: Path, seconds: float) -> Image:
    """Return a build whose `cc1 a.c` takes so long, and `cc1 b.c` one second."""
    make, first, second = (n << 22 | n for n in (1, 2, 3))
    t = TraceBuilder(cwd="/src").exec(make, "/usr/bin/make", ["make"])
    at = t.clock_ns
    for upid, source, own in ((first, "a.c", seconds), (second, "b.c", 1.0)):
        t.fork(make, upid).exec(upid, "/usr/lib/cc1", ["cc1", source])
        at = at + int(own * 1e9)
        t.at(at).exit(upid)
    folder.mkdir()
    image = database_of(folder, t.exit(make).trace())
    postprocess(image, load(folder), ("wrappers", "patterns", "linked", "compilations"))
    return open_database(folder)


def test_steps_that_are_slower_since_a_commit(tmp_path: Path) -> None:
    dataset = open_dataset(tmp_path / "f")
    for day, seconds in enumerate((1.0, 1.1, 1.05, 2.0, 2.1, 2.05), 1):
        own = about(str(day), day, commit=f"c{day}")
        fleets.add(dataset, timed(tmp_path / str(day), seconds), own)
    found = answers(dataset, "slower-since", "c4")
    steps = {row["step"]: row for row in found}
    assert "cc1 b.c" not in steps
    assert steps["cc1 a.c"]["slower_s"] == pytest.approx(1.0, abs=0.01)
    assert (steps["cc1 a.c"]["builds_before"], steps["cc1 a.c"]["builds_after"]) == (3, 3)
    history = answers(dataset, "step-history", "cc1 a.c")
    assert [row["commit"] for row in history] == [f"c{n}" for n in range(1, 7)]


# ---- statements of a user


@pytest.mark.parametrize(
    "statement",
    ["COPY (SELECT 1) TO '{0}/x'", "CREATE TABLE t (a int)", "SET enable_external_access = true",
     "SELECT 1; SELECT 2", "ATTACH '{0}/x.db'", "INSTALL httpfs", "DROP VIEW builds",
     "SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM '/etc/passwd'",
     "SELECT * FROM glob('/etc/*')", "SELECT getenv('HOME')", "SELECT * FROM lua"],
)  # fmt: skip
def test_a_statement_only_reads_the_fleet(statement: str, fleet: Dataset, tmp_path: Path) -> None:
    with pytest.raises(EtraceError):
        ask(fleet, statement.format(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_question_is_corrected() -> None:
    with pytest.raises(UsageError, match="products-with-file"):
        question("product-with-file")
    with pytest.raises(UsageError, match="takes 1"):
        question("products-with-file").values([])


@pytest.mark.parametrize("statement", [
    "EXPLAIN SELECT 1", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{place}/fleet.json'",
    "COPY (SELECT 1) TO '{place}/x'",
])  # fmt: skip
def test_a_statement_writes_nothing(fleet: Dataset, statement: str) -> None:
    before = sorted(Path(fleet.store.place).rglob("*"))
    with pytest.raises(EtraceError, match="not one SELECT"):
        ask(fleet, statement.format(place=fleet.store.place))
    assert sorted(Path(fleet.store.place).rglob("*")) == before
    assert ask(fleet, "SELECT count(*) FROM builds") == [(2,)]


def test_an_id_is_never_a_part_of_a_statement_of_spark() -> None:
    part = Part(1, "p", "2026-11-27", f"c-{'0' * 32}")
    hostile = "x\\') UNION ALL SELECT * FROM text.`/etc/hostname` -- "
    select = view(TABLES["builds"], [Reading(part, {}, {"k": hostile})], lambda *_: "t",
                  quote=spark.literal)  # fmt: skip
    assert "UNION" not in select
    assert hostile.encode().hex() in select
    assert spark.literal("VARCHAR\udc80") == "decode(unhex('564152434841523f'), 'UTF-8')"


def test_the_place_of_a_fleet_shows_no_credentials() -> None:
    assert shown_place("s3://KEY:SECRET@bucket/a/f?region=x") == "s3://bucket/a/f"
    assert shown_place("/srv/a@b/f?x") == "/srv/a@b/f?x"
