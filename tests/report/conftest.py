# SPDX-License-Identifier: Apache-2.0
"""The small build of tests/databases.py."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the small build with products."""
    return databases.write_database(tmp_path_factory.mktemp("build"))
