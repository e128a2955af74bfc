# SPDX-License-Identifier: Apache-2.0
"""The page of a flame graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from xray_samples import MT, MT_MAP, run


def test_a_flame_graph_is_one_file_that_needs_no_network(tmp_path: Path) -> None:
    out = tmp_path / "flame.html"
    assert run("flame", "-m", MT_MAP, MT, "-o", str(out)) == 0
    page = out.read_text()
    assert "http:" not in page
    assert "https:" not in page
    data = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    document = json.loads(data)
    total = sum(n[3] for n in document["nodes"] if n[0] < 0)
    assert sum(n[4] for n in document["nodes"]) == pytest.approx(total, rel=1e-4)
