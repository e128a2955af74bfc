# SPDX-License-Identifier: Apache-2.0
"""Patterns against the paths and commands of a build."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from databases import CC1_MAIN, MAKE, write_database
from libetrace.depend.configuration import load
from libetrace.depend.masks import command_mask, path_mask
from libetrace.image.file import Image

from etrace.nfsdb.products import StringTable, rewrite
from etrace.nfsdb.store import open_database
from etrace.postprocess import patterns
from etrace.postprocess.run import Work

GLOBS = ["make*", "cc1 *", "*-o*", "none"]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return open_database(write_database(tmp_path))


def commands(image: Image) -> list[str]:
    """Return what each execution is judged by."""
    table, arguments = image["executions"], image["arguments"]["string"]
    own = [
        b" ".join(image.string(arguments[i]) for i in table.span("argv.start", row)).decode()
        for row in range(table.n_rows)
    ]
    return [own[row | 1] for row in range(table.n_rows)]  # index 0 by index 1


def test_paths_are_matched_whole(image: Image) -> None:
    mask = path_mask(image, [b"*.c", b"/src/h*"])
    found = [image.path_string(row) for row, hit in enumerate(mask) if hit]
    assert found == [b"/src/hello", b"/src/main.c", b"/src/util.c"]
    assert not any(path_mask(image, []))


@pytest.mark.parametrize("negate", [False, True])
def test_commands_are_matched_and_index_0_goes_with_what_follows(
    image: Image, negate: bool
) -> None:
    for globs in ([glob] for glob in GLOBS):
        mask = command_mask(image, [glob.encode() for glob in globs], negate=negate)
        wanted = [
            any(fnmatchcase(command, glob) for glob in globs) != negate
            for command in commands(image)
        ]
        assert list(map(bool, mask)) == wanted


def test_more_patterns_than_a_byte_has_bits_are_matched(image: Image) -> None:
    globs = [b"no such %d" % number for number in range(20)] + [b"make*", b"cc1 main.c"]
    mask = command_mask(image, globs)
    upid = image["executions"]["upid"]
    assert {upid[row] for row, hit in enumerate(mask) if hit} == {MAKE, CC1_MAIN}


def test_bits_of_the_database_give_the_same(image: Image) -> None:
    globs = [b"no such %d" % number for number in range(20)] + [g.encode() for g in GLOBS]
    wanted = [command_mask(image, [glob]) for glob in globs]
    config_file = image.path.parent / ".bas_config"
    listed = [glob.decode() for glob in globs]
    config_file.write_text(json.dumps({"exclude_command_variants": {"*": listed}}))
    config = load(image.path.parent)
    strings = StringTable(image)
    tables = patterns.PHASE.run(Work(image, strings, config, 1, lambda *_: None))
    rewrite(image, [*tables, strings.table()])
    known = open_database(image.path.parent)
    assert "pattern_bits" in known.tables
    assert [command_mask(known, [glob]) for glob in globs] == wanted
