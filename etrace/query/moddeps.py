# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules that they were made of."""

from __future__ import annotations

from collections.abc import Iterable

from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules

from etrace.query.deps import walk


def moddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`: what any of the files needs; EtraceError before `cas pp`.

    A file itself is none of what it needs, but one of what another of them may need.
    """
    modules = dependencies.modules
    found: set[int] = set()
    for name in names:
        walked = walk(dependencies, [name], rules, is_exact=is_exact)
        found |= {path for path in walked.paths if modules[path]}
    return sorted(found)
