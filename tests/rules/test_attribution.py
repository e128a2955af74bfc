# SPDX-License-Identifier: Apache-2.0
"""For which targets commands of make ran: what is sure, and what is likely."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from traced_builds import trace

from etrace.nfsdb.store import open_database
from etrace.query.rows.records import Records
from etrace.rules.attribution import MakeOrder
from etrace.rules.graph import Graph
from etrace.rules.line_texts import Lines
from etrace.rules.recipes import Recipe
from etrace.rules.rule import Rule, Rules
from etrace.spec.database import NONE


def attributed(
    recipes: Mapping[str, Sequence[str]], commands: Sequence[str], at_once: int = 1,
    unit_ns: int = 1,
) -> list[str]:  # fmt: skip
    """Return the target of each command, empty for none; `at_once` of them run at once.

    Each begins 10 units after the one before, and takes 5.
    """
    rules = {name: Rule(name, has_recipe=True, recipe=[*own]) for name, own in recipes.items()}
    declared = Rules(Path("/w"), {"all": Rule("all", tuple(recipes)), **rules})
    children = [
        Recipe(NONE, NONE, begin * unit_ns, row, (begin + 5) * unit_ns)
        for row, begin in enumerate(row // at_once * 10 for row in range(len(commands)))
    ]
    graph = Graph(declared, ["all"])
    MakeOrder(graph, Lines(declared), children, lambda each: commands[each.row]).attribute()
    nodes = (graph.of_row.get(each.row, NONE) for each in children)
    return ["" if node == NONE else graph.rule(node).name for node in nodes]


def test_a_shell_function_is_no_line_of_a_recipe(tmp_path: Path) -> None:
    makefile = "X := $(shell cat in)\nout: in\n\tcat in\n"
    image = open_database(trace(tmp_path, "make", {"Makefile": makefile, "in": "1\n"}))
    records, rows = Records(image), range(image["executions"].n_rows)
    known = [records.target_names(row) for row in rows if records.argv(row) == ["cat", "in"]]
    assert known == [[], ["out"]]


def test_of_many_equal_recipes_the_one_that_a_command_names_is_taken() -> None:
    recipes = {f"t{i}": ["@echo $@ $(X)"] for i in range(500)}
    assert attributed(recipes, ["echo t450 x", "echo t7 x", "true"]) == ["t450", "t7", ""]


def test_lines_without_a_name_go_by_the_list_of_make() -> None:
    recipes = {f"t{i}": ["sleep 1", "sleep 2"] for i in range(3)}
    commands = ["sleep 1", "sleep 2"] * 3
    assert attributed(recipes, commands) == ["t0", "t0", "t1", "t1", "t2", "t2"]


def test_a_busy_make_may_begin_the_next_line_late() -> None:
    recipes = {f"t{i}": ["sleep 1", "sleep 1", "sleep 1"] for i in range(2)}
    commands = ["sleep 1"] * 6
    known = attributed(recipes, commands, at_once=2, unit_ns=50_000_000)  # 250 ms between them
    assert sorted(known) == ["t0"] * 3 + ["t1"] * 3


#: recipe of target i, and its command
ALIKE = ("@echo $@ $(X)", "echo t{} x")
DISTINCT = ("@echo {} $(X)", "echo {} x")
VARIABLE = ("$(X)", "echo {} x")
TWO = ("@echo $@ $(X)\n@touch $@", "echo t{} x")


@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize(("recipe", "text"), [ALIKE, DISTINCT, VARIABLE, TWO])
def test_many_commands_cost_no_square(recipe: str, text: str, at_once: int) -> None:
    def cost(n: int) -> float:
        recipes = {f"t{i}": recipe.format(i).split("\n") for i in range(n)}
        begin = time.process_time()
        assert all(attributed(recipes, [text.format(i) for i in range(n)], at_once))
        return time.process_time() - begin

    assert cost(4000) < 24 * cost(500) + 0.3
