# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules that they were made of."""

from __future__ import annotations

from collections.abc import Iterable

from etrace.query.dependencies import Dependencies
from etrace.query.deps import walk
from etrace.query.rules import Rules


def moddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`, without the files themselves; EtraceError before `cas pp`."""
    modules = dependencies.modules
    walked = walk(dependencies, names, rules, is_exact=is_exact)
    return [path for path in walked.paths if modules[path]]
