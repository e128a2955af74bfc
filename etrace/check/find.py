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
from etrace.query.rows.records import Records
from etrace.rules import declared
from etrace.rules.recipes import Recipes


@dataclass(frozen=True, slots=True)
class Result:
    """The faults, and what they were looked for in.

    `runs` counts runs by tool; `n_known` of `n_recipes` have known targets;
    `unknown` are makes by their command, with why.
    """

    faults: Sequence[Fault]
    runs: Mapping[str, int]
    n_recipes: int
    n_known: int
    unknown: Sequence[tuple[str, str]]


def check(
    image: Image, *, runs_shell: bool = False, is_trusted: bool = False, has_notes: bool = False
) -> Result:
    """Return the faults of a build. EtraceError without make, or when nobody may ask it."""
    recipes = Recipes(Records(image))
    if not recipes.makes:
        raise EtraceError(
            "the build ran no make or ninja that ran a command",
            "trace the build from scratch, by make or ninja",
        )
    asked = declared.ask(recipes, runs_shell=runs_shell, is_trusted=is_trusted)
    recipes.find_targets(asked.rules)
    recipes.find_learned(asked.rules)
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
    n_known = sum(bool(each.targets) for each in recipes.recipes)
    runs = Counter(map(recipes.tool, recipes.makes))
    return Result(faults.found(), runs, len(recipes.recipes), n_known, unknown)
