# SPDX-License-Identifier: Apache-2.0
"""The packages that are built, each once for all tests."""

from __future__ import annotations

import pytest
from package_builds import BASH, JSONCPP, LUA, SQLITE, ZLIB, Built, built_once, chosen


@pytest.fixture(scope="session", params=chosen(LUA, ZLIB, JSONCPP, SQLITE, BASH))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A package, built and post-processed; these have depfiles."""
    return built_once(request.param, tmp_path_factory)
