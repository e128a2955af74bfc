# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""

import re
from pathlib import Path

import pytest

from etrace import figures
from etrace.figures import agree


@pytest.mark.parametrize(
    ("n", "noun", "text"),
    [
        (0, "open", "0 opens"),
        (1, "process", "1 process"),
        (2, "process", "2 processes"),
        (1234567, "library", "1,234,567 libraries"),
        (1, "library", "1 library"),
        (2, "key", "2 keys"),
        (3, "match", "3 matches"),
    ],
)
def test_a_count_has_the_right_number_of_its_noun(n: int, noun: str, text: str) -> None:
    assert figures.count(n, noun) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (10**15, "1000.0 TB")],
)
def test_a_size_is_in_powers_of_1000(n_bytes: int, text: str) -> None:
    assert figures.size(n_bytes) == text


def test_seconds_have_three_digits() -> None:
    assert figures.seconds(1_234_567_890) == "1.235 s"


@pytest.mark.parametrize(
    ("n", "text"),
    [(1, "1 process goes on and is lost"), (1000, "1,000 processes go on and are lost")],
)
def test_a_text_agrees_with_its_number(n: int, text: str) -> None:
    assert agree(n, "process{es} go{es|} on and {is|are} lost") == text


def test_no_message_has_a_plural_in_brackets() -> None:
    sources = Path(figures.__file__).parent.rglob("*.py")
    found = [path for path in sources if re.search(r'"[^"\n]*\w\(e?s\)[^"\n]*"', path.read_text())]
    assert found == []
