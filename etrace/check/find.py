# SPDX-License-Identifier: Apache-2.0
"""An image -> the faults of the rules by which it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from libetrace.image.file import Image

from etrace.check import directories, failed, notes, outputs
from etrace.check.faults import Faults
from etrace.check.kinds import Fault
from etrace.errors import EtraceError
from etrace.query.files import WRITE
from etrace.query.rows.records import Records
from etrace.rules import declared, stored
from etrace.rules.attribution import find_targets
from etrace.rules.learned import find_learned
from etrace.rules.recipes import Recipe, Recipes


@dataclass(frozen=True, slots=True)
class Result:
    """The faults, and what they were looked for in.

    `runs` counts runs by tool; `n_known` of `n_recipes` have known targets, and `n_judged` of the
    `n_writers` that wrote files of the project; `why_not` is the reason of most of the others,
    empty when their makes are known. `unknown` are makes by their command, with why.
    """

    faults: Sequence[Fault]
    runs: Mapping[str, int]
    n_recipes: int
    n_known: int
    n_writers: int
    n_judged: int
    why_not: str
    unknown: Sequence[tuple[str, str]]


def check(
    image: Image, *, runs_shell: bool = False, is_trusted: bool = False, has_notes: bool = False
) -> Result:
    """Return the faults of a build. EtraceError without make, or when nobody may ask it."""
    recipes = Recipes(Records(image))
    if not recipes.of_make:
        raise EtraceError(
            "the build ran no make or ninja that ran a command",
            "trace the build from scratch, by make or ninja",
        )
    asked = stored.read(image) if stored.are_known(image) else declared.Asked()
    rows = [row for row in recipes.of_make if row not in asked.rules]
    if rows:
        more = declared.ask(recipes, rows, runs_shell=runs_shell, is_trusted=is_trusted)
        asked = declared.Asked({**asked.rules, **more.rules}, more.unknown)
    find_targets(recipes, asked.rules)
    find_learned(recipes, asked.rules)
    faults = Faults(recipes, asked.rules)
    faults.look()
    failed.look(faults)
    directories.look(faults)
    outputs.look(faults)
    if has_notes:
        notes.look(faults)
    records = recipes.records
    unknown = [
        (f"{' '.join(records.argv(row))} in {records.directory(row)}", why)
        for row, why in asked.unknown.items()
    ]
    writers = _writers(faults)
    missed = [each for each in writers if not each.targets]
    why_not = Counter(asked.unknown.get(each.make, "") for each in missed).most_common(1)
    return Result(
        faults.found(),
        Counter(map(recipes.tool, recipes.of_make)),
        len(recipes.recipes),
        sum(bool(each.targets) for each in recipes.recipes),
        len(writers),
        len(writers) - len(missed),
        why_not[0][0] if why_not else "",
        unknown,
    )


def _writers(faults: Faults) -> list[Recipe]:
    """Return the recipes that wrote files of the project which are still there."""
    recipes, found = faults.recipes, set[int]()
    for path, uses in recipes.uses.items():
        numbers = {use.recipe for use in uses if use.access & WRITE} - found
        if not numbers or not recipes.is_there(path):
            continue
        text = recipes.records.path(path)
        found.update(n for n in numbers if faults.is_below(text, faults.rules_of(n)))
    return [recipes.recipes[number] for number in sorted(found)]
