# SPDX-License-Identifier: Apache-2.0
"""A configure run that compiles what an earlier one did; one with its answers in a cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(n_probes: int) -> Seconds:
    story = Seconds()
    configure = story.begin(0, "sh", "./configure")
    for number in range(n_probes):
        begin, source = 100 + 100 * number, "/src/conftest.c"
        story.run((begin, begin + 10), "cat", parent=configure, writes=(source,))
        story.run((begin + 20, begin + 90), "gcc", "-c", "conftest.c", parent=configure)
    end = 100 + 100 * n_probes
    story.run((end, end + 500), "sed", "s/a/b/", parent=configure)
    story.end(end + 500, configure)
    story.end(end + 500)
    return story


def test_probes_beyond_those_that_are_always_made(tmp_path: Path) -> None:
    found = advice(tmp_path, build(10))["configure-probes"]
    assert found.title == "1 configure run of 1.600 s"
    assert "compilers 6 times" in found.what
    assert found.gain
    own_ms = 300 * 12 / 21  # of the shell, for twelve of its 21 steps
    assert found.gain.time_ns == pytest.approx((480 + own_ms) * MS)
    assert found.gain.when == "the next build from scratch"
    assert labels(found) == ["sh configure"]


def test_a_run_with_a_cache_still_asks_whether_the_compiler_works(tmp_path: Path) -> None:
    assert "configure-probes" not in advice(tmp_path, build(4))
