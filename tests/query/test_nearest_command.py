# SPDX-License-Identifier: Apache-2.0
"""The command that an execution without a program belongs to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from etrace.query.classes.nearest_command import nearest_commands
from etrace.query.deps import Walked


@pytest.mark.parametrize(
    ("binary", "parent", "found"),
    [([7], [-1], 0), ([7, -1, -1], [-1, 0, 1], 0), ([-1], [-1], -1), ([-1, -1], [1, 0], -1)],
    ids=["itself", "its grandparent", "none", "a ring of parents"],
)
def test_it_is_the_nearest_that_ran_a_program(
    binary: list[int], parent: list[int], found: int
) -> None:
    executions = cast("Any", {"binary": binary, "parent": parent})
    assert nearest_commands(executions)[-1] == found


def test_the_commands_of_a_walk_end_in_a_ring_of_parents() -> None:
    executions = {"binary": [-1, -1, 7, -1], "parent": [1, 0, -1, 2]}
    closure = cast("Any", SimpleNamespace(executions=[0, 1, 3]))
    walked = Walked(cast("Any", {"executions": executions}), (), (closure,))
    assert walked.commands == [2]
