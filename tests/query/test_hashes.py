# SPDX-License-Identifier: Apache-2.0
"""What is known of a file's content, by its row, in SQL and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import databases
import pytest
from libetrace.image.file import new_table

from etrace.cli.main import cas
from etrace.nfsdb.hash_records import State
from etrace.nfsdb.hashes import NONE, TABLE
from etrace.nfsdb.products import StringTable, rewrite
from etrace.nfsdb.store import open_database
from etrace.query import sql
from etrace.query.hashes import FileHash, Hashes

SHA, BLOB = "a" * 64, "b" * 40


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a database with hashes of two files."""
    from array import array

    directory = databases.write_database(tmp_path_factory.mktemp("build"))
    image = open_database(directory)
    strings = StringTable(image)
    known = sorted((image.find_path(path), state) for path, state in (
        (b"/src/main.c", State.TRACED), (b"/src/util.h", State.GONE),
    ))  # fmt: skip
    rows = [row for row, _ in known]
    has = [state == State.TRACED for _, state in known]
    columns = (
        array("I", rows), array("B", [state for _, state in known]),
        array("q", [12 if each else NONE for each in has]),
        array("i", [strings.number(SHA.encode()) if each else NONE for each in has]),
        array("i", [strings.number(BLOB.encode()) if each else NONE for each in has]),
    )  # fmt: skip
    rewrite(image, [strings.table(), new_table(TABLE, columns)])
    return directory


def test_a_file_has_its_hashes_by_its_row(build: Path) -> None:
    image = open_database(build)
    hashes = Hashes(image)
    assert hashes.are_known
    assert hashes.of(image.find_path(b"/src/main.c")) == FileHash(SHA, BLOB, 12, "traced")
    assert hashes.of(image.find_path(b"/src/util.h")) == FileHash("", "", -1, "gone")
    assert hashes.of(image.find_path(b"/src/util.c")) is None


def test_sql_has_words_and_null(build: Path) -> None:
    found = sql.ask(
        open_database(build), "SELECT path, state, size, sha256, git_blob FROM hashes ORDER BY path"
    )
    assert list(found.rows) == [
        ("/src/main.c", "traced", 12, SHA, BLOB), ("/src/util.h", "gone", None, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "query", [("deps", "/src/main.o", "--all"), ("refs", "--filter", "[path=/src/main.c]")]
)
def test_lists_have_them_before_the_path(
    build: Path, capsys: pytest.CaptureFixture[str], query: tuple[str, ...]
) -> None:
    assert cas(["--db", str(build), *query, "--hash"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{SHA}  /src/main.c" in lines
    assert all(line[64:66] == "  " for line in lines)


def test_json_has_fields_and_null(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cas(["--db", str(build), "deps", "/src/main.o", "--all", "--hash", "--json"]) == 0
    entries = {each["filename"]: each for each in json.loads(capsys.readouterr().out)["entries"]}
    assert entries["/src/main.c"] == {
        "filename": "/src/main.c", "sha256": SHA, "git_blob": BLOB, "hash_state": "traced",
    }  # fmt: skip
    assert entries["/src/util.h"]["sha256"] is None
    assert entries["/src/util.h"]["hash_state"] == "gone"


def test_details_and_pipelines_have_them(build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = ["refs", "--filter", "[path=/src/main.o]", "deps", "--all", "--hash", "--details"]
    assert cas(["--db", str(build), *query, "--fmt", "{sha256} {hash_state}"]) == 0
    assert f"{SHA} traced" in capsys.readouterr().out
    assert cas(["--db", str(build), *query]) == 0
    assert f",{SHA},{BLOB},traced\n" in capsys.readouterr().out


def test_what_has_no_files_or_no_hashes_says_so(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas(["--db", str(build), "deps", "/src/main.o", "--commands", "--hash"]) == 2
    assert "--hash does nothing here" in capsys.readouterr().err
    databases.write_database(tmp_path)
    assert cas(["--db", str(tmp_path), "deps", "/src/main.o", "--hash"]) == 2
    assert "no files were hashed" in capsys.readouterr().err
