# SPDX-License-Identifier: Apache-2.0
"""The small build of tests/databases.py, open."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest
from libetrace.image import Image

from etrace.nfsdb.store import open_database


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the small build with products."""
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def image(database: Path) -> Image:
    """Its image."""
    return open_database(database)


@pytest.fixture(scope="session")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Image of the small build before `cas pp`."""
    return open_database(databases.write_parsed(tmp_path_factory.mktemp("parsed")))
