# SPDX-License-Identifier: Apache-2.0
"""Commands of two builds that match, and those that cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.query.changes.matching import Numbers, Side, match

MAKE = 1 << 22 | 1


def built(folder: Path, *commands: str) -> Image:
    """Return the image of a build whose commands run one after the other."""
    folder.mkdir()
    trace = TraceBuilder("/src").exec(MAKE, "/usr/bin/make", ["make"])
    for number, words in enumerate(commands, 2):
        upid = number << 22 | number
        trace.fork(MAKE, upid).exec(upid, f"/usr/bin/{words.split()[0]}", words.split()).exit(upid)
    return database_of(folder, trace.exit(MAKE).trace())


def test_equal_commands_have_one_number_in_all_builds(tmp_path: Path) -> None:
    numbers = Numbers()
    images = built(tmp_path / "a", "cc a", "cc b", "cc a"), built(tmp_path / "b", "cc b", "cc c")
    a, b = (Side(image, numbers=numbers) for image in images)
    make, first, other, again = (a.whole[row] for row in a.commands)
    assert (first == again, first != other) == (True, True)
    assert [b.whole[row] in (make, other) for row in b.commands] == [True, True, False]


def test_equal_commands_match_in_the_order_of_time(tmp_path: Path) -> None:
    numbers = Numbers()
    images = built(tmp_path / "a", "cc a", "cc b", "cc a"), built(tmp_path / "b", "cc a", "cc a")
    a, b = (Side(image, numbers=numbers) for image in images)
    found = match(a, b)
    at = {row: place for place, row in enumerate(a.commands)}
    assert [(at[x], b.commands.index(y)) for x, y in found.pairs] == [(0, 0), (1, 1), (3, 2)]
    assert ([at[row] for row in found.removed], found.added) == ([2], ())


def test_builds_with_numbers_of_their_own_cannot_be_matched(tmp_path: Path) -> None:
    image = built(tmp_path / "a", "cc a")
    with pytest.raises(ValueError, match="numbers"):
        match(Side(image), Side(image))
