# SPDX-License-Identifier: Apache-2.0
"""Which line of a recipe a command can be, where variables are not known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from etrace.rules.lines import Lines
from etrace.rules.rule import Rule, Rules


def _can_be(line: str, text: str) -> bool:
    rules = Rules(Path("/w"), {"x": Rule("x", recipe=[line])})
    return bool(Lines(rules).with_command(text))


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        ("@mkdir -p $(OBJ)", "mkdir -p obj", True),
        ("@mkdir -p $(OBJ)", "mkdir obj", False),
        ("-$(MKDIR) '$(D)/sub' $$x", 'mkdir "out/sub" $x', True),
        ("mkdir obj", "mkdir obj", True),
        ("mkdir obj", "mkdir objs", False),
        ("$(A)b$(C)b", "xb", False),
        ("$(A)b$(C)b", "xbb", True),
        ("mkdir $(if $(x),a,b)", "mkdir a", True),
    ],
)
def test_a_variable_may_be_any_text(line: str, text: str, expected: bool) -> None:
    assert _can_be(line, text) is expected


def test_many_variables_take_no_time() -> None:
    begin = time.process_time()
    assert not _can_be("$(A)x" * 100 + "!", "x" * 100_000)
    assert time.process_time() - begin < 5  # tried one after another, they would take forever


def test_many_lines_and_commands_cost_no_square(tmp_path: Path) -> None:
    def cost(n: int) -> float:
        rules = {f"o{i}": Rule(f"o{i}", recipe=[f"@mkdir -p $(O)/d{i}"]) for i in range(n)}
        lines = Lines(Rules(tmp_path, rules))
        begin = time.process_time()
        for i in range(n):
            assert lines.with_command(f"mkdir -p out/d{i}") == {f"{tmp_path}/o{i}"}
        return time.process_time() - begin

    assert cost(16_000) < 24 * cost(2000) + 0.3
