# SPDX-License-Identifier: Apache-2.0
"""Notes: what recipes need without reading it, or take from outside of the project."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from etrace.check.faults import Faults
from etrace.check.kinds import HOME, NETWORK, NEVER_READ, TIME_OR_RANDOM
from etrace.nfsdb.environment import all_variables
from etrace.query.files import BITS, READ
from etrace.query.outside import CLOCK, fetches, program_of, reads_clock
from etrace.query.rows.file_kinds import USUAL
from etrace.rules.recipes import Recipe, Use
from etrace.spec.database import ACCESS, NONE, file_type

RANDOM = (b"/dev/urandom", b"/dev/random")


def look(faults: Faults) -> None:
    """Look for all that is a note."""
    _look_at_programs(faults)
    _look_at_home(faults)
    _look_at_devices(faults)
    _look_at_needs(faults)


def _use(faults: Faults, row: int) -> Use:
    start = faults.recipes.began_ns(row)
    return Use(faults.recipes.of_row[row], 0, start, start, row)


def _known(faults: Faults, number: int) -> Recipe | None:
    is_known = faults.rules_of(number) is not None and faults.recipes.recipes[number].targets
    return faults.recipes.recipes[number] if is_known else None


def _look_at_programs(faults: Faults) -> None:
    recipes, image = faults.recipes, faults.recipes.image
    seen: set[tuple[str, int]] = set()
    for row, binary in enumerate(image["executions"]["binary"].tolist()):
        if binary == NONE or (recipe := _known(faults, recipes.of_row[row])) is None:
            continue
        path = os.fsdecode(image.path_string(binary))
        name, words = program_of(path, recipes.records.argv(row))
        if not fetches(name, words) and not reads_clock(name, words):
            continue
        if (name, recipes.of_row[row]) not in seen:
            seen.add((name, recipes.of_row[row]))
            kind = TIME_OR_RANDOM if name == CLOCK else NETWORK
            faults.add(kind, path, recipe, None, _use(faults, row), NONE)


def _look_at_home(faults: Faults) -> None:
    recipes = faults.recipes
    homes = set(_homes(faults))
    for path, uses in recipes.uses.items():
        text = recipes.records.path(path)
        if not any(PurePosixPath(text).is_relative_to(home) for home in homes):
            continue
        if recipes.records.file_kinds.of(path) not in USUAL:
            continue
        for use in uses:
            recipe = _known(faults, use.recipe)
            if recipe is None or not use.access & READ:
                continue
            if not faults.is_below(text, faults.rules[recipe.make]):
                faults.add(HOME, text, recipe, None, use, NONE)


def _homes(faults: Faults) -> Iterator[str]:
    """Yield homes that the environment of the build names; none without `--env`."""
    for variable in all_variables(faults.recipes.image):
        name, _, value = variable.partition(b"=")
        if name == b"HOME" and len(value) > 1:
            yield os.path.realpath(os.fsdecode(value))


def _look_at_devices(faults: Faults) -> None:
    recipes, opens = faults.recipes, faults.recipes.image["opens"]
    paths = set(opens["path"].tolist())
    devices = {path for path in paths if recipes.image.path_string(path) in RANDOM}
    if not devices:
        return
    for row, path, mode in zip(opens["execution"], opens["path"], opens["mode"], strict=True):
        if path not in devices or not BITS[mode & ACCESS] & READ:
            continue
        if stat.S_ISCHR(file_type(mode)) and (found := _known(faults, recipes.of_row[row])):
            text = os.fsdecode(recipes.image.path_string(path))
            faults.add(TIME_OR_RANDOM, text, found, None, _use(faults, row), NONE)


def _look_at_needs(faults: Faults) -> None:
    recipes = faults.recipes
    readers: dict[str, set[int]] = defaultdict(set)
    for path, uses in recipes.uses.items():
        text = recipes.records.path(path)
        readers[text].update(n for use in uses for n in recipes.chain(use.recipe))
    table = recipes.image["executions"]
    for row, binary in enumerate(table["binary"].tolist()):
        if binary != NONE and recipes.of_row[row] != NONE:
            text = os.fsdecode(recipes.image.path_string(binary))
            readers[text].update(recipes.chain(recipes.of_row[row]))
    of_target: dict[tuple[int, str], set[int]] = defaultdict(set)
    unknown: dict[int, set[int]] = defaultdict(set)
    for number, recipe in enumerate(recipes.recipes):
        for target in recipe.targets:
            of_target[recipe.make, target].add(number)
        if not recipe.targets:
            unknown[recipe.make].add(number)
    for (make, target), numbers in of_target.items():
        rules = faults.rules[make]
        if (rule := rules.by_path.get(target)) is None or rule.also:
            continue
        for need in map(rules.path, rule.needs):
            known = rules.by_path.get(need)
            if (known is not None and known.is_phony) or not Path(need).is_file() or need == target:
                continue
            if readers[need].isdisjoint(numbers) and readers[need].isdisjoint(unknown[make]):
                first = recipes.recipes[min(numbers)]
                faults.add(NEVER_READ, need, first, None, _use(faults, first.row), NONE)
