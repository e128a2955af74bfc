# SPDX-License-Identifier: Apache-2.0
"""A libtool that works longer than the compiler; one that hardly does, and a plain `sh -c`."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(own_ms: int, *shell: str) -> Seconds:
    story = Seconds()
    sh = story.begin(0, *shell)
    story.run((1, 1 + own_ms), "sed", "s/a/b/", parent=sh)
    story.compile((own_ms + 2, own_ms + 1002), "a", parent=sh)
    story.end(own_ms + 1003, sh)
    story.end(own_ms + 1003)
    return story


def test_a_script_that_costs_as_much_as_the_compiler(tmp_path: Path) -> None:
    found = advice(tmp_path, build(800, "bash", "./libtool", "--mode=compile"))["compiler-wrappers"]
    assert found.title == "1 compilation through bash libtool"
    assert found.gain
    assert found.gain.is_bound
    assert 800 * MS <= found.gain.time_ns <= 803 * MS
    assert labels(found) == ["bash libtool"]


@pytest.mark.parametrize("build", [build(20, "bash", "./libtool"), build(800, "sh", "-c", "x")])
def test_little_work_or_no_script(tmp_path: Path, build: Seconds) -> None:
    assert "compiler-wrappers" not in advice(tmp_path, build)
