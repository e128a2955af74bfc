# SPDX-License-Identifier: Apache-2.0
"""Temporary files and the names that programs made up for them.

How the names of real builds come out is in test_diff.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.query.rows.records import Records
from etrace.query.rows.temporary import Temporaries

SH, A = 1 << 22 | 9, 2 << 22 | 9
NEW = O_WRONLY | O_CREAT


def temporaries(folder: Path, program: str, path: str, *, is_read_first: bool = False) -> Any:
    """A trace of a program that writes a path; returns the temporary files and the path's row."""
    t = TraceBuilder("/w").exec(SH, "/bin/sh", ["sh"], cwd="/w").fork(SH, A)
    if is_read_first:
        t.use(SH, path)
    t.exec(A, program, [program], cwd="/w").use(A, path, flags=NEW).exit(A)
    image = database_of(folder, t.exit(SH).trace())
    return Temporaries(image), image.find_path(os.fsencode(path))


@pytest.mark.parametrize(
    ("program", "path", "starred"),
    [
        ("/usr/bin/gcc-12", "/tmp/ccAbCdEf.s", "/tmp/cc*.s"),
        ("/usr/bin/x86_64-linux-gnu-gcc", "/tmp/ccAbCdEf.ltrans0.o", "/tmp/cc*.ltrans0.o"),
        ("/usr/bin/ar", "/w/stAbCdEf", "/w/st*"),
        ("/usr/bin/cat", "/w/stAbCdEf", "/w/stAbCdEf"),
        ("/usr/bin/clang", "/tmp/a-0a1b2c.o", "/tmp/a-*.o"),
        ("/usr/bin/mktemp", "/tmp/tmp.AbCdEfGhIj/x", "/tmp/tmp.*/x"),
        ("/usr/bin/gcc", "/w/statinfo.c", "/w/statinfo.c"),
    ],
)
def test_a_name_is_made_up_by_who_makes_such_names(
    tmp_path: Path, program: str, path: str, starred: str
) -> None:
    found, row = temporaries(tmp_path, program, path)
    assert found.is_temporary(row)
    assert found.starred(path.encode()) == starred.encode()


def test_what_was_there_before_or_is_there_after_is_not_temporary(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    found, row = temporaries(tmp_path / "one", "/bin/gcc", "/tmp/ccAbCdEf.s", is_read_first=True)
    assert not found.is_temporary(row)
    (tmp_path / "two").mkdir()
    kept = tmp_path / "ccAbCdEf.s"
    kept.touch()
    found, row = temporaries(tmp_path / "two", "/bin/gcc", str(kept))
    assert not found.is_temporary(row)
    assert found.starred(os.fsencode(kept)) == os.fsencode(kept)


def test_a_ring_of_parents_ends() -> None:
    image = cast("Image", {"executions": {"binary": [-1, -1], "parent": [1, 0]}})
    assert Temporaries(image)._program(0) == b""


def test_a_file_opened_by_another_name_has_its_size(tmp_path: Path) -> None:
    header, alias = tmp_path / "a.h", tmp_path / "alias.h"
    header.write_bytes(bytes(5000))
    alias.symlink_to("a.h")
    t = TraceBuilder(str(tmp_path)).exec(SH, "/usr/bin/cc", ["cc"])
    t.use(SH, str(header), original=str(alias))
    t.use(SH, str(header), original=f"{tmp_path}/sub/../a.h")
    t.use(SH, f"{tmp_path}/gone.h", original=f"{tmp_path}/sub/../gone.h")
    (tmp_path / "sub").mkdir()
    image = database_of(tmp_path, t.exit(SH).trace())
    found, records = Temporaries(image), Records(image)
    rows = [image.find_path(os.fsencode(tmp_path / name)) for name in ("a.h", "gone.h")]
    assert [found.size_of(row) for row in rows] == [5000, -1]
    assert records.file(rows[0]) | {"size": 5000, "exists": 1} == records.file(rows[0])
