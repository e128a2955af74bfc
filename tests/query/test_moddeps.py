# SPDX-License-Identifier: Apache-2.0
"""Modules of several files at once, and what a filter leaves of dependencies."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest

from etrace.cli.main import cas


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("lm moddeps", ["/src/libutil.a"]),
        ("lm revmoddeps", ["/src/hello"]),
        ("rdeps /src/util.c /src/libutil.a", ["/src/hello", "/src/libutil.a"]),
        ("rdeps /src/libutil.a", ["/src/hello"]),
        ("deps /src/hello --filter [path=*.h,type=wc]", ["/src/util.h"]),
        ("rdeps /src/util.h --filter [class=linked_exe]", ["/src/hello"]),
    ],
)
def test_several_files_give_what_each_of_them_gives(
    build: Path, command: str, wanted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas(["--dbdir", str(build), *command.split()]) == 0
    assert capsys.readouterr().out.splitlines() == wanted
