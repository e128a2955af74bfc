# SPDX-License-Identifier: Apache-2.0
"""libetrace.depend.path_opens against sets, and what it refuses."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libetrace.depend.path_opens import owned_paths
from libetrace.image.file import Table

N_OWNERS, N_EXECUTIONS = 4, 6
Opens = list[tuple[int, int, int]]


def table(opens: Opens) -> Table:
    columns = {
        name: memoryview(array(code, [row[i] for row in opens]))
        for i, (name, code) in enumerate((("path", "I"), ("execution", "I"), ("mode", "B")))
    }
    return Table("opens", len(opens), cast("Any", columns), {})


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, N_EXECUTIONS - 1), st.integers(0, 7)))
owners = st.lists(
    st.integers(-1, N_OWNERS - 1), min_size=N_EXECUTIONS, max_size=N_EXECUTIONS
)  # fmt: skip


@given(rows, rows, owners, st.integers(0, 3))
def test_each_owner_has_the_paths_of_its_executions_once(
    first: Opens, second: Opens, owner: list[int], left_out: int
) -> None:
    expected = [Counter[int]() for _ in range(N_OWNERS)]
    for path, execution, mode in first + second:
        if mode & 3 != left_out and owner[execution] >= 0:
            expected[owner[execution]][path] += 1
    tables = [table(first), table(second)]
    found = owned_paths(tables, array("i", owner), N_OWNERS, left_out)
    for number, counts in enumerate(expected):
        span = slice(found.start[number], found.start[number + 1])
        pairs = zip(found.path[span], found.n_opens[span], strict=True)
        assert list(pairs) == sorted(counts.items())
    assert len(found.path) == len(found.n_opens) == found.start[N_OWNERS]


def test_an_execution_without_an_owner_does_not_count() -> None:
    assert list(owned_paths([table([(1, 99, 0)])], array("i", [0]), 1, 1).path) == []


def test_an_owner_beyond_the_last_is_refused() -> None:
    with pytest.raises(IndexError):
        owned_paths([table([(1, 0, 0)])], array("i", [2**31 - 1]), 1, 1)
