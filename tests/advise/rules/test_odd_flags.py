# SPDX-License-Identifier: Apache-2.0
"""One compilation of twelve with -O0 and -flto; two halves that differ, and a few compilations."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import Seconds, advice, labels


def build(*options: str) -> Seconds:
    story = Seconds()
    for number, each in enumerate(options):
        story.compile((100 * number, 100 * number + 90), f"f{number}", *each.split())
    story.end(100 * len(options))
    return story


def test_a_target_with_options_of_its_own(tmp_path: Path) -> None:
    found = advice(tmp_path, build(*["-O2 -g"] * 11, "-O2 -O0 -g -flto"))["odd-flags"]
    assert found.title == (
        "1 compilation differs from the others in link-time optimisation, optimisation"
    )
    assert labels(found) == [
        "gcc f11.c  -O0 (others: -O2)", "gcc f11.c  -flto (others: without)",
    ]  # fmt: skip
    assert found.gain is None


@pytest.mark.parametrize(
    "options", [["-O2"] * 12, [*["-O2"] * 6, *["-O0"] * 6], [*["-O2"] * 8, "-O0"]]
)
def test_equal_options_and_no_majority(tmp_path: Path, options: list[str]) -> None:
    assert "odd-flags" not in advice(tmp_path, build(*options))
