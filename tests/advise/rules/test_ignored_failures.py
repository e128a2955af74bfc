# SPDX-License-Identifier: Apache-2.0
"""A tool that fails in a recipe that goes on; failures that end the build or that answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import Seconds, advice, labels


def build(*argv: str, make: int = 0, shell: tuple[str, ...] = ("sh", "-c", "x || true")) -> Seconds:
    story = Seconds()
    sh = story.begin(0, *shell)
    story.run((0, 100), *argv, parent=sh, status=1)
    story.end(101, sh, make)
    story.end(102, status=make)
    return story


@pytest.mark.parametrize("line", ["gcc -c a.c", "python3 gen.py", "cp a b"])
def test_a_failure_that_nothing_passes_on(tmp_path: Path, line: str) -> None:
    found = advice(tmp_path, build(*line.split()))["ignored-failures"]
    assert found.title == "1 command failed, and the build went on"
    assert labels(found)[0].endswith("status 1")


@pytest.mark.parametrize(
    "story",
    [
        build("gcc", "a.c", make=2),
        build("grep", "x"),
        build("mkdir", "objs"),
        build("gcc", "a.c", shell=("sh", "configure")),
    ],
)
def test_a_failed_build_a_question_and_a_probe(tmp_path: Path, story: Seconds) -> None:
    assert "ignored-failures" not in advice(tmp_path, story)


def test_what_configure_tries_with_make_is_a_probe(tmp_path: Path) -> None:
    story = Seconds()
    configure = story.begin(0, "sh", "configure")
    make = story.begin(10, "make", "-f", "try.mk", parent=configure)
    shell = story.begin(20, "sh", "-c", "gcc a.c || true", parent=make)
    story.run((30, 100), "gcc", "a.c", parent=shell, status=1)
    for end, upid in ((110, shell), (120, make), (130, configure)):
        story.end(end, upid)
    story.end(140)
    assert "ignored-failures" not in advice(tmp_path, story)
