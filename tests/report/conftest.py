# SPDX-License-Identifier: Apache-2.0
"""Builds with their reports, and a browser that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import databases
import pytest
from browser import Page, browser

from etrace.cli.main import etrace


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the small build with products."""
    return databases.write_database(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of one browser for all tests."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the Lua build, with its report."""
    where = databases.write_processed_lua(tmp_path_factory.mktemp("lua"))
    assert etrace(["report", "-o", str(where / "build.html"), str(where)]) == 0
    return where


@pytest.fixture
def shown(page: Page, lua: Path) -> Page:
    """The report of the Lua build, freshly opened."""
    page.messages.clear()
    page.requests.clear()
    page.open(lua / "build.html")
    return page
