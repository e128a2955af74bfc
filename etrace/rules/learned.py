# SPDX-License-Identifier: Apache-2.0
"""Prerequisites that only dependency files name: they order nothing in the first build.

A makefile that includes what compilers wrote (`-include main.d`, automake's `.deps/main.Po`) has
none of these prerequisites in a clean tree. make prints all prerequisites of a target in one list,
as often as makefiles name them. So what dependency files name as often as the list has it is
learned, and nothing else is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from etrace.query.files import WRITE
from etrace.rules import dependency_files
from etrace.rules.recipes import Recipe, Recipes
from etrace.rules.rule import Rules
from etrace.spec.builders import NINJA


def find_learned(recipes: Recipes, rules: Mapping[int, Rules]) -> None:
    """Find the prerequisites of makes that only dependency files name.

    These are the makefiles that recipes wrote beside another target, or that make does not make:
    one that it makes is there when make goes on.
    """
    found: dict[int, set[str]] = defaultdict(set)
    files = frozenset[str]().union(*(each.makefiles for each in rules.values()))
    for path, uses in recipes.uses.items():
        text = recipes.records.path(path)
        written = [use for use in uses if use.access & WRITE] if text in files else ()
        for number in recipes.chain(written[-1].recipe) if written else ():
            recipe = recipes.recipes[number]
            known = rules.get(recipe.make)
            if known is None or known.tool == NINJA or text not in known.makefiles:
                continue
            if _is_learned(text, recipe, known):
                found[id(known)].add(text)
    by_id = {id(each): each for each in rules.values()}
    for key, own in found.items():
        separate(by_id[key], sorted(own))


def _is_learned(makefile: str, writer: Recipe, rules: Rules) -> bool:
    """Whether a makefile that a recipe wrote was not there when make read the others first."""
    rule = rules.by_path.get(makefile)
    if rule is None or not (rule.is_target and rule.has_recipe):
        return True
    return not (writer.targets | writer.shown) <= rules.makefiles


def separate(rules: Rules, files: Iterable[str]) -> None:
    """Take from the needs of a make's targets what only some dependency files of it name.

    `files` are makefiles by path, which the build wrote after make had read them.
    """
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for file in files:
        for targets, needs in dependency_files.rules(Path(file)):
            for target in targets:
                named[rules.path(target)].update(map(_name, needs))
    for path, learned in named.items():
        if (rule := rules.by_path.get(path)) is None:
            continue
        others = Counter(rule.needs)
        others.subtract(learned)
        rule.learned += tuple(name for name in dict.fromkeys(rule.needs) if others[name] <= 0)
        rule.needs = tuple(name for name in rule.needs if others[name] > 0)


def _name(text: str) -> str:
    """Return a name as make prints it."""
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    return text
