# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> the linked modules that depend on them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from etrace.errors import EtraceError
from etrace.query.dependencies import Dependencies
from etrace.query.rdeps import rdeps
from etrace.query.rules import Rules, read_target
from etrace.query.targets import find_targets


def revmoddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`; EtraceError for a file that is no linked module."""
    names, modules = list(names), dependencies.modules
    own = [read_target(name, rules)[0] for name in names]
    for row in find_targets(dependencies.image, own, is_exact=is_exact):
        if not modules[row] and is_exact:
            path = os.fsdecode(dependencies.image.path_string(row))
            raise EtraceError(f"{path} is no linked module", f"cas rdeps {path} takes any file")
    return rdeps(dependencies, names, rules, is_exact=is_exact)
