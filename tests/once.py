# SPDX-License-Identifier: Apache-2.0
"""Build slow fixtures once in a run, and share them among the workers of pytest-xdist."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sources

MADE = ".made"


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first caller fills by `make`; others wait. Tests only read it."""
    base = factory.getbasetemp().resolve()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once" / name
    with sources.locked(folder.with_suffix(".lock")):
        if not (folder / MADE).exists():
            shutil.rmtree(folder, ignore_errors=True)  # what failed
            folder.mkdir()
            make(folder)
            (folder / MADE).touch()
    return folder
