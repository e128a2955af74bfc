# SPDX-License-Identifier: Apache-2.0
"""Linked modules and compilations of real builds against the files that lie there afterwards.

Oracles: the header of every file in the tree, CMake's compile_commands.json; and the tree itself,
which `cas pp` must leave alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from package_builds import Built

from etrace.export.compile_commands import entries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ELF_HEAD, ARCHIVE_HEAD = b"\x7fELF", (b"!<arch>\n", b"!<thin>\n")
ET_EXEC, ET_DYN = 2, 3
#: where CMake tries out compilers, and copies what they made
TRIALS = "out/CMakeFiles"
#: what CMake's rules add to the commands that it lists
DEPFILE = re.compile(r" -MD -MT \S+ -MF \S+")


def linked_files(tree: Path) -> Iterator[Path]:
    """Yield the programs, shared objects and archives of a tree, by their first bytes."""
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.is_relative_to(tree / TRIALS):
            continue
        with path.open("rb") as stream:
            head = stream.read(18)
        is_elf = head.startswith(ELF_HEAD) and head[16] in {ET_EXEC, ET_DYN}
        if is_elf or head.startswith(ARCHIVE_HEAD):
            yield path


def test_post_processing_leaves_the_build_tree_alone(built: Built) -> None:
    assert len(built.before) > 100
    assert built.after == built.before


def test_every_program_and_library_of_the_tree_is_a_linked_module(built: Built) -> None:
    there = {path for path in linked_files(built.tree) if built.is_written(path)}
    assert there >= set(built.named_modules)
    trials = built.tree / TRIALS
    modules = {path for path in built.modules if not path.is_relative_to(trials)}
    assert there - modules == set()
    assert {path for path in modules if path.is_file()} - there == set()


def test_compilations_are_those_that_cmake_wrote_down(built: Built) -> None:
    if built.package.name != "jsoncpp":
        return
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
