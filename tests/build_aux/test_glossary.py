# SPDX-License-Identifier: Apache-2.0
"""The words that CONTRIBUTING.md rules out: names and help texts of etrace do without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SOURCES = {path: ast.parse(path.read_text()) for path in (TOP / "etrace").rglob("*.py")}
#: arguments of argparse that people read
HELP = frozenset(("help", "description", "epilog", "usage", "summary"))


def ruled_out() -> list[str]:
    """Return the words of the table, in its order."""
    text = (TOP / "CONTRIBUTING.md").read_text().partition("| not | but |")[2]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE)
    return [word.strip() for row in rows for word in row.split(",")]


def names(path: Path) -> Iterator[str]:
    """Yield the names of a module and of its classes and functions."""
    yield path.stem
    for node in ast.walk(SOURCES[path]):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name


def help_texts(path: Path) -> Iterator[str]:
    """Yield the texts that a module gives to argparse."""
    for node in ast.walk(SOURCES[path]):
        if isinstance(node, ast.keyword) and node.arg in HELP:
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def words_in(name: str) -> str:
    """Return the words of `a_name` or `AName`, with blanks around each."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return f" {' '.join(re.findall('[a-z]+', split))} "


def test_the_table_is_read() -> None:
    assert {"query module", "given", "choice", "utils"} <= set(ruled_out())
    assert words_in("_chosen_rows") == words_in("ChosenRows") == " chosen rows "


@pytest.fixture(scope="module")
def texts() -> list[tuple[Path, str]]:
    return [(path, text) for path in SOURCES for text in (*names(path), *help_texts(path))]


@pytest.mark.parametrize("word", ruled_out())
def test_names_and_help_do_without(word: str, texts: list[tuple[Path, str]]) -> None:
    found = [
        f"{path.relative_to(TOP)}: {text}" for path, text in texts if f" {word} " in words_in(text)
    ]
    assert found == []
