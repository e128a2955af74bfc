# SPDX-License-Identifier: Apache-2.0
"""The same compilation again, the same but for -fPIC, and two that only look alike."""

from __future__ import annotations

from pathlib import Path

from advise.stories import MS, Seconds, advice, labels


def twice(first: str, second: str, between: str = "") -> Seconds:
    """Compile a.c with each of two words of options, and write a file in between."""
    story = Seconds()
    for begin, option in ((0, first), (1100, second)):
        argv = ("gcc", *option.split(), "-MT", f"x{begin}", "-c", "a.c", "-o", f"{begin}/a.o")
        reads = ("/src/a.c", "/src/a.h")
        story.run((begin, begin + 1000), *argv, reads=reads, writes=(f"/src/{begin}/a.o",))
        if between and not begin:
            story.run((1000, 1010), "gen", writes=(between,))
    story.end(2100)
    return story


def test_a_compilation_that_was_made_before(tmp_path: Path) -> None:
    found = advice(tmp_path, twice("-O2 -DA", "-O2 -DA", between="/src/b.h"))["compiled-twice"]
    assert found.title == "1 source compiled again with the same flags"
    assert found.gain
    assert found.gain.time_ns == 1000 * MS
    assert labels(found) == ["gcc a.c"]


def test_other_flags_or_other_contents_are_another_compilation(tmp_path: Path) -> None:
    for number, story in enumerate(
        (twice("-O2", "-O3"), twice("-O2", "-O2", between="/src/a.h"), twice("-DA", "-DB"))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert not {"compiled-twice", "static-and-shared"} & advice(folder, story).keys()


def test_libtool_compiles_for_both_libraries(tmp_path: Path) -> None:
    found = advice(tmp_path, twice("-O2 -fPIC -DPIC", "-O2"))
    assert "compiled-twice" not in found
    assert found["static-and-shared"].gain
    assert labels(found["static-and-shared"]) == ["gcc a.c"]
