# SPDX-License-Identifier: Apache-2.0
"""The list of kernels, and what documents say of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from vm import kernels

TOP = Path(__file__).resolve().parents[2]
RANGE = re.compile(r"Linux ([\d.]+\d) to ([\d.]+\d)")


@pytest.mark.parametrize("page", ["capture-kmod", "guide", "packages"])
def test_documents_name_the_range_of_the_list(page: str) -> None:
    oldest, *_, newest = kernels.KERNELS
    found = RANGE.findall((TOP / "docs" / f"{page}.md").read_text())
    assert set(found) == {(oldest, newest)}


def test_groups_name_kernels_that_can_be_found() -> None:
    assert kernels.chosen("") == [kernels.MACHINE]
    assert kernels.chosen("debug,tree") == ["debug", "tree-6.1", "tree-6.12"]
    assert {*kernels.SUITES, "6.12-unexported"} == set(kernels.chosen("all"))
