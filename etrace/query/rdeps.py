# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules, or all files, that depend on them."""

from __future__ import annotations

from collections.abc import Iterable

from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules

from etrace.query.classes.copies import find_copies
from etrace.query.given.target_rules import read_targets
from etrace.query.given.targets import find_targets


def rdeps(
    dependencies: Dependencies,
    names: Iterable[bytes],
    rules: Rules,
    *,
    is_exact: bool = True,
    all_files: bool = False,
    with_copies: bool = False,
) -> list[int]:
    """Return sorted rows of `paths`: what depends on any of the files.

    Linked modules only unless `all_files`, and copies of them; Error before `cas pp`. A file does
    not depend on itself, but may on another of them.
    """
    wanted = None if all_files else _modules(dependencies, with_copies=with_copies)
    found: set[int] = set()
    for name in names:
        for own, some in read_targets([name], rules).items():
            roots = find_targets(dependencies.image, some, is_exact=is_exact)
            found |= dependencies.made_of(roots, own, wanted)
    return sorted(found)


def _modules(dependencies: Dependencies, *, with_copies: bool) -> set[int]:
    modules = {path for path, is_module in enumerate(dependencies.modules) if is_module}
    return modules | find_copies(dependencies.image).keys() if with_copies else modules
