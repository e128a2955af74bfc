# SPDX-License-Identifier: Apache-2.0
"""Filters of paths in a database of Windows: names in any case, both slashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libetrace
import pytest
from builders import TraceBuilder
from databases import parse_bytes
from libetrace.depend.masks import path_mask

from etrace.nfsdb.store import open_database

MAKE, CL = 1 << 22 | 1, 2 << 22 | 2
ROOT = r"C:\Work"
SOURCE, HEADER, OUTSIDE = rf"{ROOT}\Src\Größe.c", rf"{ROOT}\Src\a.h", r"C:\Workshop\a.h"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a database with three opened files."""
    folder = tmp_path_factory.mktemp("windows")
    t = TraceBuilder(cwd=ROOT).fork(MAKE, CL)
    t.exec(CL, rf"{ROOT}\bin\CL.exe", ["cl", "/c"], cwd=ROOT)
    for fd, path in enumerate((SOURCE, HEADER, OUTSIDE), 3):
        t.open(CL, path, fd=fd)
    trace = t.exit(CL).trace()
    (folder / ".nfsdb").write_bytes(trace)
    names = (".nfsdb.json", ".nfsdb.env.json", ".nfsdb.mounts.json")
    for name, text in zip(names, parse_bytes(trace), strict=True):
        (folder / name).write_bytes(text)
    assert open_database(folder).attributes["path_style"] == "windows"
    return folder


@pytest.fixture(scope="module")
def db(folder: Path) -> libetrace.nfsdb:
    db = libetrace.nfsdb()
    db.load(folder / ".nfsdb.img")
    return db


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"path": "c:/work/SRC/größE.C"}, [SOURCE]),
        ({"path": [SOURCE, r"c:\x"], "negate": True}, [HEADER, OUTSIDE]),
        ({"has_path": "work/src"}, [SOURCE, HEADER]),
        ({"has_path": r"\SRC\A"}, [HEADER]),
        ({"wc": r"*\SRC\*.[CH]"}, [SOURCE, HEADER]),
        ({"wc": "c:/work*/a.h"}, [HEADER, OUTSIDE]),
        ({"wc": "*.H", "negate": True}, [SOURCE]),
        ({"re": r"c:\\WORK\\"}, [SOURCE, HEADER]),
        ({"at_source_root": True}, [SOURCE, HEADER]),
        ({"not_at_source_root": True}, [OUTSIDE]),
    ],
)
def test_paths_are_compared_as_windows_does(
    db: libetrace.nfsdb, conditions: dict[str, Any], expected: list[str]
) -> None:
    assert sorted(db.filtered_paths(**conditions)) == sorted(expected)


def test_programs_and_directories_too(db: libetrace.nfsdb) -> None:
    assert len(db.filtered_execs(bin_has_str="/bin/cl.EXE")) == 1
    assert db.filtered_execs(cwd_has_str="c:/work")
    assert not db.filtered_execs(cwd_has_str="c:/works")


def test_what_stops_the_walk_of_dependencies_is_compared_so_too(folder: Path) -> None:
    image = open_database(folder)
    mask = path_mask(image, [rb"c:/work/*", rb"*\nothing"])
    found = {image.path_string(row).decode() for row, hit in enumerate(mask) if hit}
    assert found >= {SOURCE, HEADER}
    assert OUTSIDE not in found
    kept = path_mask(image, [b"c:/work/*"], negate=True)
    assert [a ^ b for a, b in zip(mask, kept, strict=True)] == [1] * len(mask)
