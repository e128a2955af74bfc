# SPDX-License-Identifier: Apache-2.0
"""A server of the small build of tests/databases.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import databases
import pytest
from serve.asking import Server


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small build."""
    return databases.write_database(tmp_path_factory.mktemp("served") / "build")


@pytest.fixture(scope="module")
def server(database: Path) -> Iterator[Server]:
    """A server of it."""
    made = Server(database)
    yield made
    made.end()
