# SPDX-License-Identifier: Apache-2.0
"""build-aux/english.py: which phrases are refused, and where."""

from __future__ import annotations

from pathlib import Path

import english
import pytest


def refused(folder: Path, name: str, text: str) -> list[str]:
    """Return the phrases that are refused in a file."""
    (folder / name).write_text(text)
    return [phrase for _, _, phrase, _ in english.problems(folder, [name])]


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('"""Tell whether a file is read."""', "Tell"),
        ("def test_a_loss_is_told() -> None:", "told"),
        ("n_told = parser.told", "told"),
        ("# the byte behind the name", "behind"),
        ("return -1  # a path that is none", "is none"),
        ("/* reads nothing but its arguments */", "nothing but"),
        ('die("a value must stand here")', "stand"),
        ('die(f"{name} is no regular file")', "is no r"),
        ("# copied as it is", "as it is"),
        ("# names, of which three are known", ", of which"),
        ("# a line, that begins a block", ", that"),
        ("# the file lies beside the trace", "lies"),
        ("# it waits for ever", "for ever"),
    ],
)
def test_a_mark_of_the_first_draft_is_refused(tmp_path: Path, line: str, phrase: str) -> None:
    assert refused(tmp_path, "a.py", line) == [phrase]


@pytest.mark.parametrize(
    "line",
    [
        "at = file.tell() - ftell(f)",
        "if name is None:  # there is none, or there is no file",
        "toldo = standard = anewer = 0  # what it stands for",
        "# the first line, that is, the oldest; it is no longer read",
    ],
)
def test_other_uses_of_the_words_are_fine(tmp_path: Path, line: str) -> None:
    assert refused(tmp_path, "a.py", line) == []


def test_code_in_markdown_is_not_prose(tmp_path: Path) -> None:
    page = "`told` [x](told.md)\n```\ntold\n```\nIt told us.  We knew.\n"
    assert refused(tmp_path, "a.md", page) == ["told", "  "]


def test_what_is_not_text_and_texts_of_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"told\xff")
    (tmp_path / "a.svg").write_text("told")
    assert list(english.problems(tmp_path, ["a.bin", "a.svg", "gone.py"])) == []
