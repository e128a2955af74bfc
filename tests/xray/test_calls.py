# SPDX-License-Identifier: Apache-2.0
"""Records of short calls, against a list of open calls kept in Python."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libetrace.xray.expander import mark_short_calls

ENTERS, EXITS = (0, 3), (1, 2)  # kinds of records; 4 and 5 are events
Record = tuple[int, int, int]  # time, function, kind


def short_by_list(records: list[Record], shortest: int) -> list[bool]:
    """Mark records as mark_short_calls does: an exit ends the innermost call of its function."""
    marks = [False] * len(records)
    calls: list[int] = []
    for i, (tsc, function, kind) in enumerate(records):
        if kind in ENTERS:
            calls.append(i)
        elif kind in EXITS:
            marks[i] = True
            while any(records[call][1] == function for call in calls):
                begun = calls.pop()
                is_own = records[begun][1] == function
                if tsc - records[begun][0] < shortest:
                    marks[begun] = True
                elif is_own:
                    marks[i] = False
                if is_own:
                    break
    for call in calls:
        marks[call] = records[-1][0] - records[call][0] < shortest
    return marks


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(0, 5)), max_size=60),
    st.integers(1, 20),
    st.booleans(),
)
def test_short_calls_are_those_of_a_list_of_open_calls(
    records: list[Record], shortest: int, is_sorted: bool
) -> None:
    if is_sorted:
        records = sorted(records, key=lambda record: record[0])
    tsc, function, kind = (
        array(code, [r[i] for r in records]) for i, code in enumerate(("Q", "I", "B"))
    )
    marks = mark_short_calls(tsc, function, kind, shortest)
    assert list(map(bool, marks)) == short_by_list(records, shortest)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        mark_short_calls(array("Q", [1]), array("I"), array("B"), 1)
