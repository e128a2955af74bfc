# SPDX-License-Identifier: Apache-2.0
"""Linked modules and compilations of real builds against the files that lie there afterwards.

Oracles: the first bytes of every file in the tree, readelf, and CMake's compile_commands.json.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from package_builds import BASH, JSONCPP, JSONCPP_NINJA, LUA, SQLITE, ZLIB, Built, chosen, output_of

from etrace.export.compile_commands import entries
from etrace.postprocess.module_kinds import ElfType, Kind, read_elf_type

pytestmark = pytest.mark.slow

ARCHIVE_MAGICS = (b"!<arch>\n", b"!<thin>\n")
#: what CMake tries out and copies, and what was installed: copies of modules are not modules
TRIALS, INSTALLED = "out/CMakeFiles", "installed"
#: what CMake's rules add to the commands that it lists
DEPFILE = re.compile(r" -MD -MT \S+ -MF \S+")


def is_ours(built: Built, path: Path) -> bool:
    """Return whether a file is a result of the build itself."""
    return not any(path.is_relative_to(built.tree / name) for name in (TRIALS, INSTALLED))


def kind_by_tools(path: Path) -> Kind | None:
    """Return what a file is, by its first bytes and readelf; None for objects and all else."""
    with path.open("rb") as stream:
        if stream.read(8) in ARCHIVE_MAGICS:
            return Kind.ARCHIVE
    match read_elf_type(os.fsencode(path)):
        case ElfType.EXECUTABLE:
            return Kind.EXECUTABLE
        case ElfType.SHARED:
            text = output_of("readelf", "-ld", path)
            return Kind.EXECUTABLE if "INTERP" in text or "PIE" in text else Kind.SHARED
    return None


def test_post_processing_leaves_the_build_tree_alone(built: Built) -> None:
    assert len(built.states["traced"]) > 100
    assert built.states["processed"] == built.states["traced"]


@pytest.mark.parametrize(
    "built", chosen(LUA, ZLIB, JSONCPP, JSONCPP_NINJA, SQLITE, BASH), indirect=True
)
def test_every_program_and_library_of_the_tree_is_a_linked_module(built: Built) -> None:
    there = {
        path: kind
        for path in built.tree.rglob("*")
        if path.is_file() and not path.is_symlink() and is_ours(built, path)
        and (kind := kind_by_tools(path)) is not None and built.is_written(path)
    }  # fmt: skip
    assert there.keys() >= set(built.named_modules)
    modules = {
        path: kind
        for path, kind in built.modules.items()
        if path.is_file() and is_ours(built, path) and kind is not Kind.PARTIAL
    }
    assert modules == there


@pytest.mark.parametrize("built", chosen(JSONCPP), indirect=True)
def test_compilations_are_those_that_cmake_wrote_down(built: Built) -> None:
    wanted = [
        (entry["directory"], shlex.split(entry["command"])[1:], entry["file"])
        for entry in json.loads((built.tree / "out/compile_commands.json").read_text())
    ]
    ours = [
        (
            entry["directory"],
            DEPFILE.sub("", " ".join(entry["arguments"])).split()[1:],
            entry["file"],
        )
        for entry in entries(built.image)
        if not Path(entry["directory"]).is_relative_to(built.tree / TRIALS)
    ]
    assert sorted(ours) == sorted(wanted)
