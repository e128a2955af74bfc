# SPDX-License-Identifier: Apache-2.0
"""Which line of a recipe a command can be, where variables are not known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from etrace.rules.line_texts import Lines, shell_command
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
        ("mkdir $(dir $(sort $(dir $(x))))", "mkdir a", True),
        ("mkdir ${dir ${x}}", "mkdir a", True),
        ("touch $$$$.tmp $(X)", "touch $$.tmp x", True),
        ("echo $$@", "echo $@", True),
        ("echo $$@", "echo x", False),
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sh", "-c", "touch a"], "touch a"),
        (["/bin/bash", "-ec", "touch a"], "touch a"),
        (["bash", "-e", "-o", "pipefail", "-c", "touch a"], "touch a"),
        (["sh", "-c", "touch $1", "sh", "a"], "touch $1"),
        (["touch", "-c", "a"], None),
        (["sh", "a"], None),
        ([], None),
    ],
)
def test_the_command_of_a_shell(words: list[str], expected: str | None) -> None:
    assert shell_command(words) == expected


@pytest.mark.parametrize("line", ["touch $@ $(X)", "touch $(@) $(X)", "touch ${@} $(X)"])
def test_a_place_is_one_of_the_target(line: str) -> None:
    names = {name: Rule(name, recipe=["true", line]) for name in ("a$b", "c")}
    lines = Lines(Rules(Path("/w"), names))
    assert lines.places("touch 'a$b' x", "/w/a$b") == [1]
    assert lines.places("touch 'a$b' x", "/w/c") == []


def test_one_shell_runs_all_lines_of_a_recipe() -> None:
    rules = {"x": Rule("x", recipe=["@cd $(D)", "touch $@"]), ".ONESHELL": Rule(".ONESHELL")}
    assert Lines(Rules(Path("/w"), rules)).shown("cd d\ntouch x") == frozenset(["/w/x"])


@pytest.mark.parametrize(
    ("recipes", "text", "expected"),
    [
        ({"lib": "$(MAKE) -C $@", "b": "$(MAKE) -C $@"}, "make -C lib", ["lib"]),
        ({"m": "$(CC) -o $@ $^", "m2": "$(CC) -o $@ $^"}, "cc -o m2 m2.c", ["m2"]),
        ({"d/x.o": "$(CC) -c ${@F}", "d/y.o": "$(CC) -c $(@F)"}, "cc -c y.o", ["d/y.o"]),
        ({"d/x": "ls $(@D)", "e/x": "ls $(@D)", "x": "ls $(@D)"}, "ls .", ["x"]),
        ({"all-x": "make -C $(@:all-%=%)", "all-y": "true"}, "make -C x", ["all-x"]),
        ({"a.h": "sed s/a/b/ < $(IN) > $@.tmp", "b.h": "sed s/a/b/ < $(IN) > $@.tmp"},
         "sed s/a/b/ < in > b.h.tmp", ["b.h"]),
        ({"a b": "touch '$@' $(X)", "a": "touch '$@' $(X)"}, "touch 'a b' x", ["a b", "a"]),
        ({"lib.a(x.o)": "ar cr $@ $%"}, "ar cr lib.a x.o", ["lib.a"]),
        ({"x": "cp in out", "y": "cp in out"}, "cp in out", ["x", "y"]),
        ({"x": "$(run)", "y": "$(A) $(B)"}, "cp in out", []),
        ({"x": "$(run)", "y": "cp in out"}, "cp in out", ["y"]),
        ({"x": "touch $@", "y": "@-+ touch '$@'"}, "touch y", ["y"]),
    ],
)  # fmt: skip
def test_a_command_shows_its_target(
    recipes: dict[str, str], text: str, expected: list[str]
) -> None:
    rules = Rules(Path("/w"), {name: Rule(name, recipe=[line]) for name, line in recipes.items()})
    assert Lines(rules).shown(text) == frozenset(f"/w/{name}" for name in expected)


def test_the_first_input_shows_a_target() -> None:
    def rule(name: str, need: str) -> Rule:
        return Rule(name, (need, "all.h"), recipe=["$(COMPILE) $<"])

    rules = Rules(Path("/w"), {"a.o": rule("a.o", "a.c"), "b.o": rule("b.o", "s/b.c")})
    assert Lines(rules).shown("cc -c ../src/a.c") == frozenset(["/w/a.o"])
    assert Lines(rules).shown("cc -c s/b.c") == frozenset(["/w/b.o"])
    assert Lines(rules).shown("cc -c b.c") == frozenset()


@pytest.mark.parametrize("line", ["$(CC) $(F) -c x{}.c -o $@", "$(CC) $(F) -c $< -o $@", "$(X) $@"])
def test_many_targets_of_many_commands_cost_no_square(line: str) -> None:
    def cost(n: int) -> float:
        rules = {
            f"x{i}.o": Rule(f"x{i}.o", (f"x{i}.c", "config.h"), recipe=[line.format(i)])
            for i in range(n)
        }
        begin = time.process_time()
        lines = Lines(Rules(Path("/w"), rules))
        for i in range(n):
            found = lines.shown(f"cc -O2 -c x{i}.c -o x{i}.o")
            assert found == frozenset([f"/w/x{i}.o"]) or "X" in line
        return time.process_time() - begin

    assert cost(8000) < 24 * cost(1000) + 0.3
