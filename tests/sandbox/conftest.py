# SPDX-License-Identifier: Apache-2.0
"""A folder that every user can reach: pytest's own belong to root alone, and stay so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="etrace-open-") as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path
