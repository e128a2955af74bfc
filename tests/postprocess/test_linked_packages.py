# SPDX-License-Identifier: Apache-2.0
"""Modules of real packages: what was found is exactly the archives and ELF files that lie there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import sources
from backends import need_tool
from captured_builds import capture_database
from libetrace.depend.configuration import load

from etrace.nfsdb.store import StringTable
from etrace.postprocess.linked import find_modules
from etrace.postprocess.module_kinds import ElfType, Kind, read_elf_type
from etrace.postprocess.run import Work, tell_nobody

ARCHIVE_MAGICS = (b"!<arch>\n", b"!<thin>\n")
#: of what cmake tries out: a copy of a module, which is not one
COPIED = ".bin"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def kind_by_tools(path: Path) -> Kind | None:
    """Return what a file is, by its first bytes and readelf; None for objects and all else."""
    with path.open("rb") as stream:
        if stream.read(8) in ARCHIVE_MAGICS:
            return Kind.ARCHIVE
    match read_elf_type(os.fsencode(path)):
        case ElfType.EXECUTABLE:
            return Kind.EXECUTABLE
        case ElfType.SHARED:
            text = subprocess.run(
                ["readelf", "-ld", path], check=True, capture_output=True, text=True
            ).stdout
            return Kind.EXECUTABLE if "INTERP" in text or "PIE" in text else Kind.SHARED
    return None


@pytest.mark.parametrize(
    ("package", "script"),
    [
        ("lua5.4", "make -j2 linux"),
        ("zlib", "./configure && make -j2"),
        ("libjsoncpp", "cmake -G Ninja -B out -DBUILD_OBJECT_LIBS=OFF . && ninja -C out"),
    ],
)
def test_the_modules_of_a_package_are_its_binaries(
    package: str, script: str, tmp_path: Path
) -> None:
    for tool in ("make", "cmake", "ninja"):
        need_tool(tool, "make cmake ninja-build")
    tree = Path(os.path.realpath(tmp_path)) / "tree"
    sources.fetch(package, tmp_path / "unpacked").rename(tree)
    image = capture_database(tmp_path, ["sh", "-ec", script], tree)
    work = Work(image, StringTable(image), load(Path()), 1, tell_nobody)
    found = {
        Path(os.fsdecode(image.path_string(each.path))): Kind(each.kind)
        for each in find_modules(work)
    }
    there = {path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()}
    wanted = {
        path: kind
        for path in there
        if path.suffix != COPIED and (kind := kind_by_tools(path)) is not None
    }
    assert {
        path: kind for path, kind in found.items() if path in there and kind is not Kind.PARTIAL
    } == wanted
    assert wanted
