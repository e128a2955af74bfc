# SPDX-License-Identifier: Apache-2.0
"""What is suggested for a word that is not known."""

from __future__ import annotations

import pytest

from etrace.alike import distance, nearest, suggestion
from etrace.cli.cas.program import COMMANDS

NAMES = [name for command in COMMANDS for name in (command.name, *command.aliases)]


@pytest.mark.parametrize(
    ("a", "b", "n"),
    [("run", "run", 0), ("rnu", "run", 1), ("rn", "run", 1), ("deps", "dps", 1), ("", "ab", 2),
     ("status", "tsatus", 1), ("abc", "xyz", 3)],
)  # fmt: skip
def test_a_slip_is_a_letter_too_few_too_many_another_or_two_exchanged(
    a: str, b: str, n: int
) -> None:
    assert (distance(a, b), distance(b, a)) == (n, n)


@pytest.mark.parametrize(("limit", "n"), [(0, 1), (2, 3), (3, 3), (9, 3)])
def test_beyond_a_limit_slips_are_not_counted(limit: int, n: int) -> None:
    assert distance("abc", "xyz", limit) == n


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("dps", ["deps"]),
        ("dep", ["deps"]),
        ("linked_module", ["linked-modules"]),
        ("comands", ["commands"]),
        ("DEPS", ["deps", "rdeps"]),
        ("foo", []),
        ("xx", []),
        ("q", []),
    ],
)
def test_only_what_is_alike_is_suggested(word: str, wanted: list[str]) -> None:
    found = nearest(word, NAMES)
    assert found[: len(wanted)] == wanted
    assert bool(found) == bool(wanted)


def test_without_anything_alike_all_are_listed() -> None:
    assert suggestion("rnu", ["run", "stop"]) == "did you mean run?"
    assert suggestion("xyz", ["run", "stop"]) == "there are: run, stop"
