# SPDX-License-Identifier: Apache-2.0
"""etrace_cat with zstd: in a build of its own, whatever the build under test was made with."""

from __future__ import annotations

from pathlib import Path

import pytest
from collect import collector
from once import made_once


@pytest.fixture(scope="session")
def with_zstd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def build(folder: Path) -> None:
        collector.build(folder, ["-DETRACE_WITH_ZSTD"], ["-lzstd"])

    return made_once(tmp_path_factory, "zstd", build) / "etrace_cat"


@pytest.fixture
def compressing(with_zstd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the tests run it."""
    monkeypatch.setenv(collector.VARIABLE, str(with_zstd))
