# SPDX-License-Identifier: Apache-2.0
"""Files that the build opened, who opened them and how, and those that it never used."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.files import descendants, faccess, procref, ref_files, unused
from etrace.query.select.selection import Selection, opened_paths, pid_rows


def test_each_file_is_there_once(image: Image) -> None:
    opened = {path for _, _, _, files in databases.COMMANDS.values() for path in files}
    assert ref_files(image) == sorted(path.encode() for path in opened)


def test_files_of_one_program(image: Image) -> None:
    assert ref_files(image, Selection(binaries=[b"/usr/bin/ar"])) == [
        b"/src/libutil.a",
        b"/src/util.o",
    ]


def test_the_writer_and_the_reader_of_an_object(image: Image) -> None:
    upid = image["executions"]["upid"]
    found = faccess(image, Selection(paths=[b"/src/main.o"]))
    assert [(upid[a.execution], a.letters) for a in found] == [
        (databases.CC1_MAIN, "w"),
        (databases.LD, "r"),
    ]


def paths(image: Image, upid: int, *, with_children: bool) -> list[bytes]:
    rows = procref(image, Selection(pids=[b"%d" % upid]), with_children=with_children)
    return opened_paths(image, rows)


def test_a_process_alone(image: Image) -> None:
    assert paths(image, databases.GCC_LINK, with_children=False) == []
    assert paths(image, databases.MAKE, with_children=False) == [b"/src/Makefile"]


def test_a_process_with_its_children(image: Image) -> None:
    wanted = [b"/src/hello", b"/src/libutil.a", b"/src/main.o"]
    assert paths(image, databases.GCC_LINK, with_children=True) == wanted
    assert paths(image, databases.MAKE, with_children=True) == ref_files(image)


def test_descendants_are_all_executions_of_all_children(image: Image) -> None:
    make = pid_rows(image, [b"%d:1" % databases.MAKE])
    assert descendants(image, make) == list(range(make[0], image["executions"].n_rows))


CC = 1 << 22 | 9


def test_files_that_were_neither_read_nor_written_nor_run_are_listed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in (
        "read.c",
        "made.o",
        "tool",
        "old/dead.c",
        "dead.h",
        ".git/config",
        ".nfsdb.img",
        "real.h",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "link.h").symlink_to("real.h")
    (tree / "gone.h").symlink_to("nowhere")
    t = TraceBuilder(str(tree)).exec(CC, str(tree / "tool"), ["tool"])
    t.use(CC, str(tree / "read.c")).use(CC, str(tree / "real.h"), original=str(tree / "link.h"))
    t.use(CC, str(tree / "made.o"), flags=O_WRONLY | O_CREAT).exit(CC)
    image = database_of(tmp_path, t.trace())
    found = [str(tree / name).encode() for name in ("dead.h", "old/dead.c")]
    assert unused(image, tree) == found
    assert unused(image, tree / "old" / ".." / "old") == found[1:]
    with pytest.raises(EtraceError, match="not a directory"):
        unused(image, tree / "read.c")
