# SPDX-License-Identifier: Apache-2.0
"""The closures of all modules as tables: what each holds, when they are made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from databases import write_database, write_parsed
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.nfsdb.store import StringTable, open_database, rewrite
from etrace.postprocess.closures import PHASE
from etrace.postprocess.config import Config, load
from etrace.postprocess.exclusions import Exclusions, exclusions_of
from etrace.postprocess.run import Work, fingerprint


def work_on(image: Image, config: Config | None = None) -> Work:
    config = config or load(image.path.parent)
    return Work(image, StringTable(image), config, 1, lambda *_: None)


def lists(image: Image, table: str, column: str) -> dict[str, list[str]]:
    def name(path: int) -> str:
        return image.path_string(path).decode()

    modules, paths = image["modules"], image[table]["path"]
    return {
        name(module): [name(paths[i]) for i in modules.span(column, row)]
        for row, module in enumerate(modules["path"])
    }


def test_the_tables_hold_the_closures_of_every_module(tmp_path: Path) -> None:
    image = open_database(write_database(tmp_path / "build"))
    tables = PHASE.run(work_on(image))
    assert PHASE.describe(tables) == "dependencies of 2 modules: 9 files"
    rewrite(image, tables)
    image = open_database(tmp_path / "build")
    of_archive = ["/src/util.c", "/src/util.h", "/src/util.o"]
    full = ["/src/libutil.a", "/src/main.c", "/src/main.o", *of_archive]
    direct = ["/src/libutil.a", "/src/main.c", "/src/main.o", "/src/util.h"]
    assert lists(image, "module_full", "full.start") == {
        "/src/hello": full,
        "/src/libutil.a": of_archive,
    }
    assert lists(image, "module_direct", "direct.start") == {
        "/src/hello": direct,
        "/src/libutil.a": of_archive,
    }


def test_every_part_of_the_configuration_that_counts_makes_them_again(tmp_path: Path) -> None:
    image = open_database(write_database(tmp_path / "build"))
    config = load(tmp_path)
    known = fingerprint(PHASE, work_on(image, config))
    assert fingerprint(PHASE, work_on(image, replace(config, ld_spec=()))) == known
    for name in PHASE.inputs:
        value: Any = {"*": ("x",)} if "variants" in name else ("x",)
        other = replace(config, **{name: value})
        assert fingerprint(PHASE, work_on(image, other)) != known


def test_modules_must_have_been_looked_for(tmp_path: Path) -> None:
    image = open_database(write_parsed(tmp_path / "build"))
    with pytest.raises(EtraceError, match="no linked modules yet"):
        PHASE.run(work_on(image))


def test_wildcards_choose_what_is_left_out_of_a_module() -> None:
    config = replace(
        load(Path("/nonexistent")),
        dependency_exclude_patterns=("/dev/*",),
        additional_module_exclude_patterns=("*.tmp",),
        additional_module_exclude_pattern_variants={"*/a": ("*.x",), "/w/*": ("*.y", "*.tmp")},
        exclude_command_variants={"*/a": ("make*",), "*/b": ("sh*",)},
        module_dependencies_with_pipes=("*/a", "*/c"),
        module_dependencies_exclude_with_pipes=("*/c",),
    )
    assert exclusions_of(config, b"/w/a") == Exclusions(
        (b"/dev/*", b"*.tmp", b"*.x", b"*.y"), (b"make*",), pipes=True
    )
    assert exclusions_of(config, b"/c") == Exclusions((b"/dev/*", b"*.tmp"), (), pipes=False)
    assert exclusions_of(config, b"/b").pipes is None
