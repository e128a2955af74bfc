# SPDX-License-Identifier: Apache-2.0
"""A link that runs alone at the end; one that compilations outlast."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice, labels


def build(begin: int) -> Seconds:
    story = Seconds("-j2")
    story.compile((0, 2000), "a")
    story.run((begin, begin + 1000), "ld", "-o", "prog", "b.o", writes=("/src/prog",))
    story.end(max(2000, begin + 1000))
    return story


def test_the_end_waits_for_a_link(tmp_path: Path) -> None:
    story = Seconds()
    story.compile((0, 2000), "a")
    reads = ("/src/a.o",)
    story.run((2001, 3001), "ld", "-o", "prog", "a.o", reads=reads, writes=("/src/prog",))
    story.end(3001)
    found = advice(tmp_path, story)["slow-links"]
    assert found.title == "1 link by ld: 1.000 s"
    assert found.gain
    assert (found.gain.time_ns, found.gain.is_bound) == (1000 * MS, True)
    assert labels(found) == ["ld prog"]


def test_a_link_beside_a_longer_compilation(tmp_path: Path) -> None:
    story = Seconds("-j2")
    story.compile((0, 2000), "a")
    story.run((1, 1001), "ld", "-o", "prog", "b.o", writes=("/src/prog",))
    story.end(2000)
    assert "slow-links" not in advice(tmp_path, story)


def remedy(folder: Path, linker: str, *options: str) -> str:
    story = Seconds()
    story.compile((0, 2000), "a", *options)
    argv = (linker, "-o", "prog", "a.o")
    story.run((2001, 3001), *argv, reads=("/src/a.o",), writes=("/src/prog",))
    story.end(3001)
    return advice(folder, story)["slow-links"].how


@pytest.mark.parametrize(
    ("linker", "others"),
    [
        ("ld", "-fuse-ld=lld, mold or gold"),
        ("x86_64-linux-gnu-ld.bfd", "-fuse-ld=lld, mold or gold"),
        ("ld.gold", "-fuse-ld=lld or mold"),
        ("ld.lld", "-fuse-ld=mold"),
        ("ld.mold", None),
        ("ld.wild", None),
    ],
)
def test_only_a_faster_linker_is_advised(tmp_path: Path, linker: str, others: str | None) -> None:
    how = remedy(tmp_path, linker)
    assert f"({others})" in how if others else "fuse-ld" not in how


def test_options_are_named_that_the_build_has(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    how = remedy(tmp_path / "a", "ld", "-O2")
    assert "-flto" not in how
    assert "-gsplit-dwarf" not in how
    how = remedy(tmp_path / "b", "ld", "-g", "-flto=auto")
    assert "-flto" in how
    assert "-gsplit-dwarf" in how
