# SPDX-License-Identifier: Apache-2.0
"""One build of the tracer, one Wine prefix and one actor for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from windows import wine as wine_support
from windows.wine import Wine


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with both tracers."""
    return wine_support.build_tracer(tmp_path_factory.mktemp("tracer"))


@pytest.fixture(scope="session")
def wine(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    """Give a prefix."""
    folder = tmp_path_factory.mktemp("wine")
    with wine_support.wine(folder, built / "x86_64/windows-tracer.exe") as it:
        yield it


@pytest.fixture(scope="session")
def actor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program that reports what it was started with (programs/actor.c)."""
    out = tmp_path_factory.mktemp("actor") / "actor.exe"
    return wine_support.build_program(wine_support.PROGRAMS / "actor.c", out)
