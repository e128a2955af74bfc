# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> the linked modules that depend on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules

from etrace.errors import EtraceError
from etrace.query.classes.names import Names
from etrace.query.given.target_rules import read_targets
from etrace.query.given.targets import find_targets


def revmoddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`; EtraceError for a file that is not a linked module.

    A symbolic link stands for the module that it leads to.
    """
    modules = {path for path, is_module in enumerate(dependencies.modules) if is_module}
    links = Names(dependencies.image)
    found: set[int] = set()
    for name in names:
        for own, some in read_targets([name], rules).items():
            rows = find_targets(dependencies.image, some, is_exact=is_exact)
            roots = [links.target(row) for row in rows]
            if is_exact:
                _check(dependencies, rows, roots)
            found |= dependencies.made_of(roots, own, modules)
    return sorted(found)


def _check(dependencies: Dependencies, rows: Sequence[int], roots: Sequence[int]) -> None:
    for row, root in zip(rows, roots, strict=True):
        if not dependencies.modules[root]:
            path = os.fsdecode(dependencies.image.path_string(row))
            raise EtraceError(f"{path} is not a linked module", f"cas rdeps {path} takes any file")
