# SPDX-License-Identifier: Apache-2.0
"""How often the tracer stops a build: what it costs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from backends import BACKENDS, Backend, capture, need_tool

DATA = Path(__file__).resolve().parent.parent / "data"
CALLS_IN_A_ROUND = 10  # of descriptors.c


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_close_or_dup_whose_result_is_known_stops_once(backend: Backend, tmp_path: Path) -> None:
    need_tool("gcc", "gcc")
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    program = folder.with_name("descriptors")
    subprocess.run(["gcc", "-O1", "-o", program, DATA / "descriptors.c"], check=True)
    stops = []
    for rounds in ("10", "110"):
        stats = ["--stats", str(folder / "stats")]
        assert capture(backend, [program, rounds], folder, options=stats).status == 0
        stops.append(json.loads((folder / "stats").read_text())["stops"])
    assert stops[1] - stops[0] == 100 * CALLS_IN_A_ROUND
