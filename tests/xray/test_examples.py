# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/xray.md and of the package run as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from etrace import xray

TOP = Path(__file__).parents[2]


def test_the_page_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)
    failed, n_run = doctest.testfile(str(TOP / "docs" / "xray.md"), module_relative=False)
    assert n_run > 5
    assert failed == 0


def test_the_docstring_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)
    failed, n_run = doctest.testmod(xray)
    assert n_run > 3
    assert failed == 0
