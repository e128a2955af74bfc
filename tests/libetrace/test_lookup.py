# SPDX-License-Identifier: Apache-2.0
"""Strings by their bytes and by prefix, and what originals resolved to, against plain Python."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libetrace.image.string_lookup import Lookup, resolve_strings

TEXTS = st.lists(st.binary(max_size=6), unique=True).map(sorted)


def lookup(texts: list[bytes]) -> Lookup:
    start = array("Q", accumulate(map(len, texts), initial=0))
    return Lookup(start, b"".join(texts))


@given(TEXTS, st.binary(max_size=6))
def test_a_string_is_found_where_it_is(texts: list[bytes], other: bytes) -> None:
    found = lookup(texts)
    assert [found.find(text) for text in texts] == list(range(len(texts)))
    assert found.find(other) == (texts.index(other) if other in texts else -1)
    assert found.n_rows == len(texts)


@given(TEXTS, st.binary(max_size=3))
def test_a_prefix_has_the_rows_that_begin_with_it(texts: list[bytes], prefix: bytes) -> None:
    first, end = lookup(texts).prefixed(prefix)
    assert texts[first:end] == [text for text in texts if text.startswith(prefix)]


@pytest.mark.parametrize("start", [[], [0, 2, 1, 3], [0, 4]])
def test_damaged_offsets_are_refused(start: list[int]) -> None:
    with pytest.raises(ValueError, match="damaged"):
        Lookup(array("Q", start), b"abc")


def test_a_string_names_what_an_open_of_it_led_to_else_the_path_itself() -> None:
    # paths 0, 1, 2 are strings 1, 2, 3; string 2 was asked for and led to path 2, then to path 0
    path_strings = array("I", [1, 2, 3])
    originals, paths = array("I", [1, 2, 2, 4]), array("I", [0, 2, 0, 1])
    assert resolve_strings(path_strings, originals, paths, 6).tolist() == [-1, 0, 2, 2, 1, -1]


def test_rows_out_of_range_are_passed_over() -> None:
    big = 2**32 - 1
    path_strings = array("I", [0, big])
    originals, paths = array("I", [big, 1, 1]), array("I", [0, big, 0])
    assert resolve_strings(path_strings, originals, paths, 2).tolist() == [0, 0]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        resolve_strings(array("I"), array("I", [1]), array("I"), 2)
