# SPDX-License-Identifier: Apache-2.0
"""Phases over an image: what is written and when, what is reused, what a damaged image does."""

from __future__ import annotations

import lzma
from array import array
from pathlib import Path

import pytest
from databases import GOLDEN, database_of
from libetrace.depend.configuration import load
from libetrace.image.file import Image, NewColumn, NewTable, open_image
from libetrace.image.header import SCHEMA

from etrace.errors import EtraceError
from etrace.nfsdb.products import rewrite
from etrace.postprocess.run import (
    PHASES,
    Result,
    fingerprint,
    load_phase,
    postprocess,
    product,
)
from etrace.spec.database import NONE

OURS = ("wrappers", "patterns", "linked")


@pytest.fixture(scope="module")
def trace() -> bytes:
    return lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())


@pytest.fixture
def image(tmp_path: Path, trace: bytes) -> Image:
    return database_of(tmp_path, trace)


def run(image: Image, *names: str, force: bool = False) -> dict[str, str]:
    """Run phases on the image as it is now: what each says."""
    results: list[Result] = []
    fresh = open_image(image.path)
    postprocess(fresh, load(image.path.parent), names, force=force, report=results.append)
    return {result.phase: result.text for result in results}


def test_a_real_build_has_its_modules_and_shells(image: Image) -> None:
    assert run(image, *OURS) == {
        "wrappers": "224 executions below 2 shells",
        "patterns": "0 matches of 0 command patterns",
        "linked": "3 links of 3 modules, archives: 1",
    }
    done = open_image(image.path)
    linked, executions = done["linked"], done["executions"]
    assert [
        (
            done.path_string(executions["binary"][linked["execution"][i]]),
            done.path_string(linked["path"][i]).rpartition(b"/")[2],
            linked["type"][i],
        )
        for i in range(linked.n_rows)
    ] == [
        (b"/usr/bin/ar", b"liblua.a", 0),
        (b"/usr/bin/ld", b"lua", 1),
        (b"/usr/bin/ld", b"luac", 1),
    ]
    shells = {row for row in done["wrappers"]["execution"] if row != NONE}
    assert {done.path_string(executions["binary"][row]) for row in shells} == {b"/usr/bin/sh"}


def test_each_module_of_a_phase_is_there_and_makes_the_tables_it_says(image: Image) -> None:
    names = [table for phase in map(load_phase, PHASES) for table in phase.tables]
    assert run(image, *PHASES).keys() == set(PHASES)
    assert set(names) <= open_image(image.path).tables.keys()
    assert set(names) <= {name for name, table in SCHEMA.items() if table.is_product}


def test_columns_have_the_units_and_meanings_of_the_schema(image: Image) -> None:
    run(image, *OURS)
    done = open_image(image.path)
    for name in ("wrappers", "patterns", "pattern_bits", "linked"):
        for column_name, column in SCHEMA[name].columns.items():
            info = done[name].infos[column_name]
            assert (info.dtype, info.unit, info.meaning) == (
                column.dtype, column.unit, column.meaning
            )  # fmt: skip


def test_a_phase_alone_keeps_what_another_found(image: Image) -> None:
    run(image, "linked")
    run(image, "wrappers")
    assert {"linked", "wrappers"} <= open_image(image.path).tables.keys()
    assert run(image, "linked", "wrappers") == {"linked": "", "wrappers": ""}


def test_a_table_that_is_missing_is_made_though_the_fingerprint_is_there(image: Image) -> None:
    (linked,) = (phase for phase in map(load_phase, ("linked",)))
    run(image, "linked")
    known = dict(open_image(image.path).attributes["phases"])
    image = open_image(image.path)
    kept = {name: table for name, table in image.tables.items() if name != "linked"}
    image.tables = kept
    rewrite(image, [], {"phases": known})
    assert linked.tables == ("linked",)
    assert run(image, "linked")["linked"].startswith("3 links")


def test_a_fingerprint_follows_the_inputs_of_its_phase_alone(tmp_path: Path, image: Image) -> None:
    run(image, *OURS)
    (image.path.parent / ".bas_config").write_text('{"rbm_wrapping_binaries": []}')
    assert run(image, *OURS) == {
        "wrappers": "0 executions below 0 shells", "patterns": "", "linked": ""
    }  # fmt: skip


def test_every_input_is_a_field_of_the_configuration_or_of_the_work(image: Image) -> None:
    from etrace.nfsdb.products import StringTable
    from etrace.postprocess.run import Work, say_nothing

    work = Work(image, StringTable(image), load(Path()), 1, say_nothing)
    prints = {fingerprint(phase, work) for phase in map(load_phase, PHASES)}
    assert len(prints) == len(PHASES)


def test_a_phase_that_fails_leaves_the_image_as_it_was(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = image.path.read_bytes()

    def fail(work: object) -> None:
        raise EtraceError("no")

    monkeypatch.setattr("etrace.postprocess.linked.find_modules", fail)
    with pytest.raises(EtraceError, match="no"):
        run(image, "wrappers", "linked")
    assert image.path.read_bytes() == before


@pytest.mark.parametrize(
    ("table", "column", "code"),
    [
        ("executions", "parent", "i"), ("executions", "binary", "i"), ("arguments", "string", "I"),
        ("opens", "path", "I"), ("executions", "argv.start", "Q"),
        ("paths", "string", "I"),
        ("executions", "opens.start", "Q"), ("children", "execution", "i"),
    ],
)  # fmt: skip
def test_rows_outside_their_tables_are_an_error(
    image: Image, table: str, column: str, code: str
) -> None:
    old = image[table]
    bad = array(code, [0x7FFFFFF0]) * len(old[column])
    columns = [
        NewColumn(name, info.dtype, bad if name == column else old[name])
        for name, info in old.infos.items()
    ]
    rewrite(image, [NewTable(table, old.n_rows, columns)], {})
    (image.path.parent / ".bas_config").write_text('{"exclude_command_variants": {"*": ["make*"]}}')
    with pytest.raises(EtraceError, match=r"\.img: "):
        run(image, *OURS)


def test_a_product_counts_its_rows_without_the_end_of_a_start() -> None:
    table = product("added_strings", array("Q", [0, 1, 1]), b"x")
    assert (table.name, table.n_rows, len(table.columns)) == ("added_strings", 2, 2)
