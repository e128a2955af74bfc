# SPDX-License-Identifier: Apache-2.0
"""`create_nfsdb`, `parse_nfsdb` and versions."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import libetrace
import pytest
from databases import GCC_MAIN, GOLDEN, write_database, write_lua
from libetrace.image.file import open_image
from libetrace.image.header import SCHEMA_VERSION


def test_an_image_of_entries_gives_the_entries_back(tmp_path: Path) -> None:
    entries = json.loads((write_lua(tmp_path) / ".nfsdb.json").read_bytes())
    assert libetrace.create_nfsdb(entries, "/root", "1.2", [], [], tmp_path / "x.img")
    db = libetrace.nfsdb()
    db.load(tmp_path / "x.img")
    assert [entry.json() for entry in db] == entries


def test_products_go_in_and_out_with_their_patterns(tmp_path: Path) -> None:
    small = libetrace.nfsdb()
    small.load(write_database(tmp_path) / ".nfsdb.img")
    bits = small.precompute_command_patterns(["*gcc*", "*\udcff"])
    assert bits is not None
    entries = [entry.json() for entry in small]
    for entry in entries:
        entry["n"] = "gA==" if bits[entry["p"], entry["x"]] == b"\x80" else "AA=="
        entry["m"] = small.pids()[0]
    libetrace.create_nfsdb(entries, "/", "", ["*gcc*", "*\udcff"], [], tmp_path / "x.img")
    db = libetrace.nfsdb()
    db.load(tmp_path / "x.img")
    assert [entry.json() for entry in db] == entries
    assert db.pcp_list() == ["*gcc*", "*\udcff"]
    assert db[GCC_MAIN, 1][0].pcp == ["*gcc*"]


def test_an_entry_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(libetrace.error, match="not a database"):
        libetrace.create_nfsdb([{"x": 1}], "/", "", [], [], tmp_path / "x.img")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_parsed_to_three_files(tmp_path: Path) -> None:
    trace = tmp_path / "t.nfsdb"
    trace.write_bytes(lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()))
    assert libetrace.parse_nfsdb(trace, tmp_path / "t.json", "-j1") == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"t.nfsdb", "t.json", "t.env.json", "t.mounts.json"}
    assert len(json.loads((tmp_path / "t.json").read_bytes())) == 239


def test_a_missing_trace_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        libetrace.parse_nfsdb(tmp_path / "no", tmp_path / "t.json", "-j2")
    assert list(tmp_path.iterdir()) == []


def test_an_image_says_its_versions(tmp_path: Path) -> None:
    libetrace.create_nfsdb([], "/", "of today", [], [], tmp_path / "x.img")
    assert libetrace.image_version(tmp_path / "x.img") == SCHEMA_VERSION
    assert libetrace.database_version(tmp_path / "x.img") == "of today"
    assert open_image(tmp_path / "x.img")["executions"].n_rows == 0
