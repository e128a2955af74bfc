# SPDX-License-Identifier: Apache-2.0
"""Every query of `cas` is described on a page; tests/test_pages.py runs their examples."""

from __future__ import annotations

import re
from pathlib import Path

from etrace.cli.cas import program as cas

TOP = Path(__file__).parents[2]


def test_every_query_is_on_a_page() -> None:
    pages = " ".join(path.read_text() for path in (TOP / "docs").glob("*.md"))
    assert [c.name for c in cas.QUERIES if not re.search(rf"(`|cas ){c.name}\b", pages)] == []
