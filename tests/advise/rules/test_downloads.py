# SPDX-License-Identifier: Apache-2.0
"""Command lines that fetch, and those of the same programs that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import Seconds, advice


def build(*argv: str) -> Seconds:
    story = Seconds()
    story.run((0, 1000), *argv)
    story.end(1001)
    return story


@pytest.mark.parametrize(
    "line",
    ["curl -O http://x/y", "wget x", "git clone x", "git -q fetch", "pip install duckdb",
     "python3 /usr/bin/pip install duckdb", "python3 -m pip download x", "go mod download"],
)  # fmt: skip
def test_a_build_that_fetches(tmp_path: Path, line: str) -> None:
    found = advice(tmp_path, build(*line.split()))["downloads"]
    assert found.title == "1 download during the build: 1.000 s"
    assert found.n_evidence == 1


@pytest.mark.parametrize(
    "line",
    ["curl --version", "git describe", "git status", "pip --version",
     "pip install --no-index duckdb", "python3 curl.py", "cat curl", "go build", "cc git"],
)  # fmt: skip
def test_a_build_that_does_not(tmp_path: Path, line: str) -> None:
    assert "downloads" not in advice(tmp_path, build(*line.split()))
