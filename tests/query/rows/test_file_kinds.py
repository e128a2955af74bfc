# SPDX-License-Identifier: Apache-2.0
"""Kinds of files: what the trace shows first, names last."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import databases
import pytest
from databases import capture_database
from libetrace.depend import configuration as config
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.postprocess.run import postprocess
from etrace.query.dependencies import walk
from etrace.query.rows.file_kinds import FileKind, FileKinds, by_name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/w/a.c", FileKind.SOURCE),
        ("/w/statinfo.c", FileKind.SOURCE),
        ("/w/config.h.in", FileKind.HEADER),
        ("/usr/include/c++/12/vector", FileKind.HEADER),
        ("/w/a.o", FileKind.OBJECT),
        ("/w/liba.so.1.2", FileKind.LIBRARY),
        ("/w/ld-linux-x86-64.so.2", FileKind.LIBRARY),
        ("/w/libLLVM.so.22.1-rust-1.95.0-stable", FileKind.LIBRARY),
        ("/w/libstdc++.so.6.0.30-gdb.py", FileKind.SOURCE),
        ("/w/liba.so.1.symbols", None),
        ("/w/Makefile.in", FileKind.CONFIG),
        ("/w/.config", FileKind.CONFIG),
        ("/w/x.dep", FileKind.CONFIG),
        ("/w/README", None),
    ],
)
def test_what_a_name_says(name: str, kind: FileKind | None) -> None:
    assert by_name(name.encode()) is kind


def test_a_file_of_dependencies_is_no_source_in_d() -> None:
    assert by_name(b"/w/a.d") is FileKind.SOURCE
    assert by_name(b"/w/a.d", is_made=True) is FileKind.CONFIG


SCRIPT = """\
echo 'int main(void) { return 0; }' > conftest.c; gcc conftest.c -o conftest; rm conftest*
gcc gen.c -o gen; ./gen > table.tmp; mv table.tmp table.h
gcc -c -MD a.c; ar rcs liba.a a.o
cat words > text 2> /dev/null; echo true > ./sub.sh; sh ./sub.sh
perl -MCarp -e 1
gcc -x c main.txt -x none liba.a -o prog
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image]:
    folder = tmp_path_factory.mktemp("kinds")
    work = folder / "work"
    work.mkdir()
    (work / "gen.c").write_text('#include <stdio.h>\nint main(void) { puts("#define A 1"); }\n')
    (work / "a.c").write_text('#include "table.h"\nint a = A;\n')
    (work / "main.txt").write_text("extern int a; int main(void) { return a; }\n")
    (work / "words").write_text("some\n")
    image = capture_database(folder, ["/bin/sh", "-ec", SCRIPT], work)
    postprocess(image, config.load(folder), ("linked", "compilations"))
    return work, open_database(folder)


OWN = {
    "gen.c": FileKind.SOURCE,
    "main.txt": FileKind.SOURCE,  # it was compiled
    "a.c": FileKind.SOURCE,
    "table.h": FileKind.HEADER,
    "a.o": FileKind.OBJECT,
    "liba.a": FileKind.LIBRARY,
    "gen": FileKind.EXECUTABLE,  # it was made here, therefore it is not a tool
    "prog": FileKind.EXECUTABLE,
    "a.d": FileKind.CONFIG,
    "words": FileKind.DATA,
    "text": FileKind.DATA,
    "sub.sh": FileKind.SOURCE,  # never opened by this very name
    "conftest.c": FileKind.TEMPORARY,
    "conftest": FileKind.TEMPORARY,
    "table.tmp": FileKind.TEMPORARY,
}


@pytest.mark.parametrize("name", OWN)
def test_the_files_of_a_build(built: tuple[Path, Image], name: str) -> None:
    work, image = built
    assert FileKinds(image).of(image.find_path(os.fsencode(work / name))) is OWN[name]


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (b"/libc.so.6", FileKind.LIBRARY),  # ld loads it to run, and links it
        (b"/libbfd-*.so", FileKind.TOOL),  # ld loads it to run
        (b"/liblto_plugin.so", FileKind.TOOL),
        (b"/ld.so.cache", FileKind.TOOL),
        (b"/cc1", FileKind.TOOL),
        (b"/Carp.pm", FileKind.TOOL),  # perl-base has modules in a directory of its own
        (b"/Scrt1.o", FileKind.OBJECT),
        (b"/stdio.h", FileKind.HEADER),
        (b"/dev/null", FileKind.DEVICE),
    ],
)
def test_the_files_of_the_system(built: tuple[Path, Image], end: bytes, kind: FileKind) -> None:
    _, image = built
    head, star, tail = end.partition(b"*")
    found = [
        FileKinds(image).of(row)
        for row in range(image["paths"].n_rows)
        if (path := image.path_string(row)).endswith(tail if star else end) and (head in path)
    ]
    assert found == [kind] * len(found)
    assert found


def test_a_build_whose_tree_is_gone_keeps_its_kinds(tmp_path: Path) -> None:
    image = open_database(databases.write_processed_lua(tmp_path))
    kinds, found = FileKinds(image), walk(Dependencies(image), [b"src/lua"], Rules())
    assert Counter(kinds.of(path).value for path in found.paths) == {
        "source": 33,
        "header": 148,
        "object": 38,
        "library": 12,  # liblua.a, libgcc, libc, libm, libdl, libmvec, ld-linux: nothing ld runs on
        "tool": 27,
        "temporary": 35,
        "directory": 1,
    }
