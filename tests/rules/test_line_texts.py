# SPDX-License-Identifier: Apache-2.0
"""Which line of a recipe a command can be, where variables are not known."""

from __future__ import annotations

import time

import pytest

from etrace.rules.line_texts import Lines, command_text, may_be, parts_of


def _can_be(line: str, text: str) -> bool:
    command = command_text(["sh", "-c", text])
    found = may_be(command, parts_of(line))
    assert bool(Lines([(line, "x")]).with_command(command)) is found
    return found


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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sh", "-c", "@touch a"], "toucha"),
        (["bash", "-ec", "touch 'a'"], "toucha"),
        (["touch", "a"], "toucha"),
        (["sh", "a"], "sha"),
    ],
)
def test_a_simple_command_has_no_shell(words: list[str], expected: str) -> None:
    assert command_text(words) == expected


@pytest.mark.parametrize("line", ["touch $@ $(X)", "touch $(@) $(X)", "touch ${@} $(X)"])
def test_the_target_stands_for_itself(line: str) -> None:
    assert may_be("toucha$bx", parts_of(line, "a$b"))
    assert not may_be("touchbx", parts_of(line, "a$b"))
    assert parts_of("echo $$@", "a") == ["echo$@"]


def test_many_lines_and_commands_cost_no_square() -> None:
    def cost(n: int) -> float:
        lines = Lines((f"@mkdir -p $(O)/d{i}", i) for i in range(n))
        begin = time.process_time()
        for i in range(n):
            assert lines.with_command(f"mkdir-pout/d{i}") == {i}
        return time.process_time() - begin

    assert cost(16_000) < 24 * cost(2000) + 0.3
