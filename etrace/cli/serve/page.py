# SPDX-License-Identifier: Apache-2.0
"""The pages of the server, which ask the API as any program does.

The page of queries is in `web/`; that of the report is etrace/report's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from etrace.report import page as report

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


@cache
def report_html() -> bytes:
    """Return the page of a report."""
    return report.served().encode()


@cache
def report_script() -> bytes:
    """Return what it runs."""
    return report.script().encode()


@cache
def report_style() -> bytes:
    """Return its style sheet."""
    return report.style().encode()
