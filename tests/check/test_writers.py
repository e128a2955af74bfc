# SPDX-License-Identifier: Apache-2.0
"""Which of many writers matter to a recipe: what the definition by all pairs says."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from etrace.check.writers import Writers
from etrace.query.files import WRITE
from etrace.rules.reach import Reach
from etrace.rules.recipes import Recipe, Recipes, Use
from etrace.rules.rule import Rule, Rules
from etrace.spec.database import NONE

TOP = Path("/w")


def recipes_of(own: list[Recipe]) -> Recipes:
    """Return recipes without an image."""
    found = SimpleNamespace(recipes=own)
    for name in ("chain", "meet"):
        setattr(found, name, getattr(Recipes, name).__get__(found))
    return cast("Recipes", found)


def rules_of(needs: dict[str, list[str]], **more: Any) -> Rules:
    return Rules(TOP, {name: Rule(name, tuple(own)) for name, own in needs.items()}, **more)


def reached(graph: dict[int, list[int]], name: int) -> set[int]:
    seen, todo = set[int](), [name]
    while todo:
        if (at := todo.pop()) not in seen:
            seen.add(at)
            todo += graph.get(at, [])
    return seen


@pytest.mark.parametrize("seed", range(300))
def test_a_graph_reaches_what_a_walk_finds(seed: int) -> None:
    some = random.Random(seed)
    n = some.randint(1, 14)
    graph = {at: [some.randrange(n + 2) for _ in range(some.randint(0, 3))] for at in range(n)}
    reach = Reach(cast("dict[Any, list[Any]]", graph))
    for a in graph:
        found, own = reached(graph, a), reach.number(a)
        assert own is not None
        for b in range(n + 2):
            other = reach.number(b)
            assert (other is not None and reach.reaches(own, other)) == (b in found)
        assert reach.bits(own) == sum(1 << each for each in reach.numbers(found))
        goals = reach.numbers([n, n + 1])
        assert bool(reach.reaching(goals)[own]) == bool(found & {n, n + 1})


def build(some: random.Random) -> tuple[Recipes, dict[int, Rules], list[Use]]:
    """Return recipes of up to three makes, within each other or not, their rules, and writers."""
    n_targets, own, outer = some.randint(1, 8), list[Recipe](), {1000: NONE}
    for number in range(some.randint(1, 14)):
        if own and len(outer) < 3 and some.random() < 0.3:
            outer[1000 + len(outer)] = some.choice([NONE, *range(len(own))])
        make = some.choice(sorted(outer))
        targets = {f"/w/t{some.randrange(n_targets)}" for _ in range(some.choice([0, 1, 1, 1, 2]))}
        own.append(Recipe(make, outer[make], number, number, number, frozenset(targets)))
    rules = {}
    for make in outer:
        needs = {
            f"t{at}": [f"t{some.randrange(at + 1)}" for _ in range(some.randint(0, 2))]
            + ["log"] * (some.random() < 0.1)
            for at in range(n_targets)
        }
        makefiles = frozenset(
            f"/w/t{some.randrange(n_targets)}" for _ in range(some.random() < 0.2)
        )
        if some.random() < 0.9:
            rules[make] = rules_of(needs, is_serial=some.random() < 0.1, makefiles=makefiles)
    uses = [Use(some.randrange(len(own)), WRITE, at, at, at) for at in range(some.randint(0, 20))]
    return recipes_of(own), rules, uses


def pairs(
    recipes: Recipes, rules: dict[int, Rules], uses: list[Use]
) -> Iterator[tuple[Recipe, Recipe, Use]]:
    """Yield each later recipe of two that do not wait for each other, by all pairs."""
    first = list({use.recipe: use for use in reversed(uses)}.values())
    first.sort(key=lambda use: use.begin_ns)
    for at, b in enumerate(first):
        for a in first[:at]:
            met = recipes.meet(a.recipe, b.recipe)
            if met is None:
                continue
            one, other = (recipes.recipes[number] for number in met)
            known = rules.get(one.make)
            if known is None or known.is_serial or not one.targets or not other.targets:
                continue
            is_ordered = any(
                known.needs(x.targets, y.targets, order_only=True)
                for x, y in ((one, other), (other, one))
            )
            log = "/w/log"
            if not is_ordered and not known.needs(other.targets, [log], order_only=True):
                yield other, one, b


@pytest.mark.parametrize("seed", range(300))
def test_writers_that_nothing_orders_are_those_of_all_pairs(seed: int) -> None:
    recipes, rules, uses = build(random.Random(seed))
    expected = {(later.row, use) for later, _, use in pairs(recipes, rules, uses)}
    found = Writers(recipes, rules, "/w/log", uses)
    assert {(later.row, use) for later, _, use, _ in found.unordered()} == expected
    firsts: dict[tuple[int, Use], int] = {}
    for later, earlier, use in pairs(recipes, rules, uses):
        firsts.setdefault((later.row, use), earlier.row)
    assert {(a.row, use): b.row for a, b, use, _ in found.unordered()} == firsts


def shape(name: str, n: int) -> tuple[Rules, list[list[str]]]:
    """Return the rules of n recipes, and their targets."""
    targets = [[f"/w/t{at}"] for at in range(n)]
    if name == "side by side":
        needs = {f"t{at}": ["src"] for at in range(n)}
    elif name == "chain":
        needs = {f"t{at}": [f"t{at - 1}"] if at else ["src"] for at in range(n)}
    elif name == "ladder":
        needs = {f"t{at}": [f"t{max(at - k, 0)}" for k in (1, 2)] if at else [] for at in range(n)}
    elif name == "backwards":
        needs = {f"t{at}": [f"t{at + 1}"] if at + 1 < n else ["src"] for at in range(n)}
    elif name == "headers":  # all need one that needs thousands
        needs = {f"t{at}": ["headers"] for at in range(n)}
        needs["headers"] = [f"h{at}" for at in range(n)]
    elif name == "library":  # half of them need one that needs the other half
        needs = {f"t{at}": ["lib"] if at >= n // 2 else ["src"] for at in range(n)}
        needs["lib"] = [f"t{at}" for at in range(n // 2)]
    else:  # pairs: every second one needs the one before it, and nothing else
        needs = {f"t{at}": [f"t{at - 1}"] if at % 2 else ["src"] for at in range(n)}
    return rules_of({"all": [f"t{at}" for at in range(n)], **needs}), targets


@pytest.mark.parametrize(
    "name", ["side by side", "chain", "ladder", "pairs", "backwards", "headers", "library"]
)
def test_many_writers_of_one_file_cost_no_square(name: str) -> None:
    def cost(n: int) -> float:
        rules, targets = shape(name, n)
        own = [Recipe(1000, NONE, at, at, at, frozenset(each)) for at, each in enumerate(targets)]
        uses = [Use(at, WRITE, at, at, at) for at in range(n)]
        begin = time.process_time()
        found = Writers(recipes_of(own), {1000: rules}, "/w/log", uses)
        assert len(list(found.unordered())) <= n
        for at in range(n):
            assert name in ("side by side", "headers") or next(iter(found.that_matter(at)))
        return time.process_time() - begin

    cost(500)  # imports, and what Python makes once
    assert cost(16_000) <= 24 * cost(2000) + 0.3
