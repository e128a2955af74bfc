# SPDX-License-Identifier: Apache-2.0
"""The page of the server: its files in `web/`, which ask the API as any program does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("web")


@cache
def _read(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def html() -> bytes:
    """Return the page."""
    return _read("page.html")


def script() -> bytes:
    """Return what it runs."""
    return _read("page.js")


def style() -> bytes:
    """Return its style sheet."""
    return _read("page.css")
