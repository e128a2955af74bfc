# SPDX-License-Identifier: Apache-2.0
"""Facts about a database as a whole."""

from __future__ import annotations

import databases
from libetrace.image.file import Image

from etrace import __version__
from etrace.query.facts import (
    COMPILERS,
    LINKERS,
    config,
    patterns,
    root_pid,
    source_root,
    stat,
    version,
)


def test_counts(image: Image) -> None:
    assert stat(image) == {
        "processes": 8,
        "execs": 16,
        "execs_commands": 8,
        "execs_failed": 0,
        "execs_compilations": 2,
        "execs_linking": 2,
        "binaries": 5,
        "opens": 12,
        "paths": 8,
        "linked": 2,
        "linked_paths": 2,
        "compiled": 2,
        "compiled_paths": 2,
        "patterns": None,
    }


def test_what_pp_has_not_looked_for_is_not_known(parsed: Image) -> None:
    unknown = [name for name, value in stat(parsed).items() if value is None]
    assert unknown == ["execs_compilations", "execs_linking", "linked", "linked_paths", "compiled",
                       "compiled_paths", "patterns"]  # fmt: skip


def test_the_root(image: Image) -> None:
    assert root_pid(image) == databases.MAKE
    assert source_root(image) == b"/src"


def test_versions(image: Image) -> None:
    assert version(image) == {"version": "", "schema": image.schema, "etrace": __version__}


def test_the_shipped_configuration(image: Image) -> None:
    shown = config(image)
    assert str(shown["path"]).endswith("default.bas_config")
    assert "*/gcc" in patterns(image, COMPILERS)
    assert set(patterns(image, LINKERS)) == {*shown["ld_spec"], *shown["ar_spec"]}
