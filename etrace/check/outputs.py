# SPDX-License-Identifier: Apache-2.0
"""Files that recipes write beside their targets: kept and read by others, or temporary.

libtool's files beside a `.lo` are left out: its rules name only that one, by design.
"""

from __future__ import annotations

from etrace.check.faults import Faults
from etrace.check.kinds import (
    MISSING_ORDER,
    SHARED_TEMPORARY,
    TWO_WRITERS,
    UNDECLARED_OUTPUT,
)
from etrace.check.writers import Writers
from etrace.query.files import READ, WRITE
from etrace.rules.recipes import Use


def look(faults: Faults) -> None:
    """Look for shared temporary files, and for outputs that no rule names."""
    recipes = faults.recipes
    for path, uses in recipes.uses.items():
        if not any(use.access & WRITE for use in uses):
            continue
        text = recipes.records.path(path)
        if not recipes.is_there(path):
            _look_at_temporary(faults, text, uses)
        elif faults.counts(path) and not any(
            faults.has(name, text) for name in (MISSING_ORDER, TWO_WRITERS)
        ):
            _look_at_output(faults, text, uses)


def _look_at_temporary(faults: Faults, text: str, uses: list[Use]) -> None:
    written = [use for use in uses if use.access & WRITE]
    writers = Writers(faults.recipes, faults.rules, text, written)
    for later, earlier, use, by in writers.unordered():
        faults.add(SHARED_TEMPORARY, text, later, earlier, use, by.execution)
        return
    faults.look_at_siblings(SHARED_TEMPORARY, text, writers.first.values())


def _look_at_output(faults: Faults, text: str, uses: list[Use]) -> None:
    recipes = faults.recipes
    writers = {use.recipe: use for use in uses if use.access & WRITE}
    if len(writers) != 1:
        return
    ((number, by),) = writers.items()
    writer = recipes.recipes[number]
    rules = faults.rules.get(writer.make)
    if rules is None or not writer.targets or not faults.is_below(text, rules):
        return
    is_of_libtool = any(path.endswith(".lo") for path in writer.targets)
    if rules.is_target(text) or is_of_libtool:
        return
    for use in uses:
        if not use.access & READ or use.recipe == number or use.begin_ns < by.begin_ns:
            continue
        pair = faults.pair(use.recipe, number)
        if pair is not None and pair[1] is writer:
            faults.add(UNDECLARED_OUTPUT, text, pair[0], writer, use, by.execution)
