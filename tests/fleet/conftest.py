# SPDX-License-Identifier: Apache-2.0
"""The golden Lua build, once for each file of tests."""

from __future__ import annotations

import fleets
import pytest
from libetrace.image.file import Image


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return fleets.lua(tmp_path_factory.mktemp("lua"))
