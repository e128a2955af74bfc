# SPDX-License-Identifier: Apache-2.0
"""The small build of tests/databases.py, open; databases of made traces."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import databases
import pytest
from builders import TraceBuilder
from databases import database_of
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image
from query.traced_builds import Opened

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


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open the database of a made trace."""
    numbers = count()

    def opened(trace: TraceBuilder) -> Dependencies:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return Dependencies(database_of(folder, trace.trace()))

    return opened
