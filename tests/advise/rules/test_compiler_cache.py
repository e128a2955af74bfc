# SPDX-License-Identifier: Apache-2.0
"""Compilations without ccache, with one that misses for several reasons, and with one that hits."""

from __future__ import annotations

from pathlib import Path

import pytest
from advise.stories import MS, Seconds, advice

ENTRY = "/root/.ccache/a/b/" + "c" * 28
MANIFEST, RESULT = f"{ENTRY}M", f"{ENTRY}R"


def build(*, launcher: bool = True, hit: bool = False, opens: tuple[str, ...] = ()) -> Seconds:
    story = Seconds()
    words = ("gcc", "-c", "a.c", "-o", "a.o")
    if launcher:
        top = story.begin(0, "ccache", *words)
        for path in opens:
            flags = 0o1101 if path.startswith("+") else 0
            story.at(0).use(top, path.removeprefix("+"), flags=flags)
        if not hit:
            gcc = story.begin(1, *words, parent=top)
            story.run((2, 1000), "cc1", "a.c", parent=gcc, reads=("/src/a.c",))
            story.end(1000, gcc)
        else:
            story.at(1).use(top, "/src/a.o", flags=0o1101)
        story.end(1000, top)
    else:
        story.run((0, 1000), *words, reads=("/src/a.c",), writes=("/src/a.o",))
    story.end(1001)
    return story


def test_compilations_without_a_cache(tmp_path: Path) -> None:
    found = advice(tmp_path, build(launcher=False))["no-compiler-cache"]
    assert found.title == "1 compilation without a cache"
    assert found.gain
    assert (found.gain.time_ns, found.gain.when) == (980 * MS, "the next build of the same sources")


@pytest.mark.parametrize(
    ("opens", "why"),
    [
        ((), "did not look into the cache"),
        ((f"+{MANIFEST}", f"+{RESULT}"), "that the cache did not know"),
    ],
)
def test_a_cache_that_misses(tmp_path: Path, opens: tuple[str, ...], why: str) -> None:
    found = advice(tmp_path, build(opens=opens))
    assert "no-compiler-cache" not in found
    assert found["cache-misses"].title == "the cache missed 1 of 1 compilation"
    assert why in found["cache-misses"].what


def test_a_cache_that_hits(tmp_path: Path) -> None:
    found = advice(tmp_path, build(hit=True))
    assert not {"no-compiler-cache", "cache-misses"} & found.keys()
