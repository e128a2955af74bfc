# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules that they depend on."""

from __future__ import annotations

from collections.abc import Iterable

from libetrace.depend.dependencies import Dependencies
from libetrace.depend.rules import Rules

from etrace.query.deps import walk


def moddeps(
    dependencies: Dependencies, names: Iterable[bytes], rules: Rules, *, is_exact: bool = True
) -> list[int]:
    """Return sorted rows of `paths`: modules that the files need; EtraceError before `cas pp`.

    A file is not its own dependency, but it may be one of another given file.
    """
    modules = dependencies.modules
    found: set[int] = set()
    for name in names:
        walked = walk(dependencies, [name], rules, is_exact=is_exact)
        found |= {path for path in walked.paths if modules[path]}
    return sorted(found)
