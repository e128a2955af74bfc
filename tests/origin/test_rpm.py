# SPDX-License-Identifier: Apache-2.0
"""Packages of rpm, from a database made here: headers as rpm writes them."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from measured import costs

from etrace.origin.origins import Origins
from etrace.origin.rpm import INT32, STRING, STRINGS, read_header

Tag = tuple[int, int, list[bytes] | list[int]]


def header(*tags: Tag) -> bytes:
    store, index = b"", b""
    for tag, kind, values in tags:
        offset = len(store)
        for value in values:
            store += value + b"\0" if isinstance(value, bytes) else struct.pack(">I", value)
        index += struct.pack(">IIII", tag, kind, offset, len(values))
    return struct.pack(">II", len(tags), len(store)) + index + store


BASH = header(
    (1003, INT32, [2]), (1116, INT32, [0, 1]), (1000, STRING, [b"bash"]),
    (1001, STRING, [b"5.2"]), (1002, STRING, [b"1.fc40"]), (1011, STRING, [b"Fedora Project"]),
    (1014, STRING, [b"GPL-3.0-or-later"]), (1022, STRING, [b"x86_64"]),
    (1117, STRINGS, [b"bash", b"\xff"]), (1118, STRINGS, [b"/usr/bin/", b"/usr/share/"]),
)  # fmt: skip


def database(root: Path, *blobs: object) -> Path:
    folder = root / "usr/lib/sysimage/rpm"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "rpmdb.sqlite")) as connection:
        connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB)")
        connection.executemany("INSERT INTO Packages (blob) VALUES (?)", [(b,) for b in blobs])
        connection.commit()
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text("ID=fedora\nVERSION_ID=40\n")
    return folder


def test_a_file_has_the_package_whose_header_names_it(tmp_path: Path) -> None:
    database(tmp_path, BASH)
    found = Origins([b"/usr/bin/bash", b"/usr/share/\xff", b"/bin/bash"], bytes(tmp_path))
    purl = "pkg:rpm/fedora/bash@5.2-1.fc40?arch=x86_64&distro=fedora-40&epoch=2"
    assert {path: each.purl for path, each in found.packages.items()} == dict.fromkeys(
        (b"/usr/bin/bash", b"/usr/share/\xff"), purl
    )
    package = found.packages[b"/usr/bin/bash"]
    assert (package.supplier, found.terms(package).expression) == (
        "Fedora Project", "GPL-3.0-or-later",
    )  # fmt: skip


def test_a_file_is_found_by_either_name_of_a_merged_directory(tmp_path: Path) -> None:
    database(tmp_path, BASH)
    (tmp_path / "bin").symlink_to("usr/bin")
    found = Origins([b"/bin/bash"], bytes(tmp_path))
    assert [path for path, each in found.packages.items() if each.name == "bash"] == [b"/bin/bash"]


def test_damaged_headers_are_counted(tmp_path: Path) -> None:
    cut = [BASH[:n] for n in range(0, len(BASH), 7)]
    assert all(read_header(each) is None for each in cut)
    wild = struct.pack(">II", 1, 4) + struct.pack(">IIII", 1000, STRING, 2**31, 2**31) + b"abcd"
    folder = database(tmp_path, BASH, wild, "text", *cut)
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert len(found.packages) == 1
    assert f"{len(cut) + 2} packages are damaged" in found.problems[0]
    (folder / "rpmdb.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert not found.packages
    assert "rpmdb.sqlite: " in found.problems[0]


def test_older_databases_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "var/lib/rpm"
    folder.mkdir(parents=True)
    (folder / "Packages").write_bytes(b"x")
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert "as Berkeley DB, which etrace does not read" in found.problems[0]


def test_nothing_is_written_beside_the_database(tmp_path: Path) -> None:
    folder = database(tmp_path, BASH)
    (folder / "rpmdb.sqlite-wal").write_bytes(b"x")
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert found.problems == [f"{folder}/rpmdb.sqlite-wal: what rpm did last is not read"]
    assert sorted(each.name for each in folder.iterdir()) == ["rpmdb.sqlite", "rpmdb.sqlite-wal"]


def test_a_view_in_place_of_the_table_is_not_asked(tmp_path: Path) -> None:
    folder = database(tmp_path, BASH)
    with closing(sqlite3.connect(folder / "rpmdb.sqlite")) as connection:
        connection.execute("DROP TABLE Packages")
        connection.execute(
            "CREATE VIEW Packages AS WITH RECURSIVE c(hnum, blob) AS (VALUES (1, x'00') "
            "UNION ALL SELECT hnum + 1, blob FROM c) SELECT * FROM c"
        )
        connection.commit()
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert not found.packages
    assert "it has no table of packages" in found.problems[0]


def test_a_tag_counts_once() -> None:
    n, store = 50_000, b"x\0" * 50_000
    entry = struct.pack(">IIII", 1117, STRINGS, 0, n)
    assert read_header(struct.pack(">II", n, len(store)) + entry * n + store) is None  # no name


def test_a_table_that_computes_its_columns_is_not_read(tmp_path: Path) -> None:
    folder = database(tmp_path)
    with closing(sqlite3.connect(folder / "rpmdb.sqlite")) as connection:
        connection.execute("DROP TABLE Packages")
        connection.execute(
            "CREATE TABLE Packages (hnum INTEGER, blob GENERATED ALWAYS AS (zeroblob(30000000)))"
        )
        connection.executemany("INSERT INTO Packages VALUES (?)", [(n,) for n in range(1000)])
        connection.commit()
    seconds, n_bytes = costs(lambda: Origins([b"/usr/bin/bash"], bytes(tmp_path)))
    assert seconds < 2
    assert n_bytes < 64 << 20
    found = Origins([b"/usr/bin/bash"], bytes(tmp_path))
    assert found.problems[0].endswith("its table of packages computes columns")
