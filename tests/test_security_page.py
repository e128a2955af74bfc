# SPDX-License-Identifier: Apache-2.0
"""docs/security.md names a test in every row, and these tests are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
PAGE = (TOP / "docs/security.md").read_text()
ROWS = [
    line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| who ")
]
#: what stands between backquotes in the last cell: a file, a test of one, or both
NAMED = re.compile(r"`([\w/]+\.py)?(?:::)?(?:\.\.)?(test_\w+|\w+)?(?:\.\.)?`")


def _files(name: str) -> list[Path]:
    return list(TOP.glob(name)) or list(TOP.glob(f"tests/**/{name}"))


@pytest.mark.parametrize("row", ROWS)
def test_each_defence_names_tests_that_are_there(row: str) -> None:
    last = row.rstrip("| ").rpartition(" | ")[2]
    named = NAMED.findall(last)
    assert named or "](" in last, "neither a test nor a documented limit"
    sources = ""
    for file, test in named:
        if file:
            found = _files(file)
            assert found, f"{file} is not there"
            sources = "".join(path.read_text() for path in found)
        if test:
            assert re.search(rf"def \w*{test}", sources), f"{test} is not in {file or 'the file'}"


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 20
