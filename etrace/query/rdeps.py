# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules, or all files, that depend on them.

A walk with the order of time turned round. Where the configuration leaves out other things for
other files, one walk for each set of exclusions finds the files that it holds for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from etrace.postprocess.exclusions import Exclusions, exclusions_of
from etrace.query.copies import find_copies
from etrace.query.dependencies import Dependencies
from etrace.query.rules import Rules, read_targets
from etrace.query.targets import find_targets


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

    Linked modules only unless `all_files`, and copies of them; EtraceError before `cas pp`. A file
    does not depend on itself, but may on another of them.
    """
    wanted = None if all_files else _modules(dependencies, with_copies=with_copies)
    found: set[int] = set()
    for name in names:
        for own, some in read_targets([name], rules).items():
            roots = find_targets(dependencies.image, some, is_exact=is_exact)
            found |= made_of(dependencies, roots, own, wanted)
    return sorted(found)


def _modules(dependencies: Dependencies, *, with_copies: bool) -> set[int]:
    modules = {path for path, is_module in enumerate(dependencies.modules) if is_module}
    return modules | find_copies(dependencies.image).keys() if with_copies else modules


def made_of(
    dependencies: Dependencies, roots: Collection[int], rules: Rules, wanted: set[int] | None
) -> set[int]:
    """Return the rows of `paths` among `wanted` (None: all) that depend on some of `roots`.

    The configuration of each of them decides, as when it is asked for what it depends on.
    """
    kept = [path for path in roots if not dependencies.is_left_out(path, rules)]
    found: set[int] = set()
    for left_out, own in _by_exclusions(dependencies, kept, rules, wanted).items():
        closure = dependencies.closure(kept, rules, left_out, reverse=True)
        found |= own & set(closure.paths)
    return found - set(roots)


def _by_exclusions(
    dependencies: Dependencies, roots: Collection[int], rules: Rules, wanted: set[int] | None
) -> dict[Exclusions, set[int]]:
    """Return the files that may depend on the roots, by what the configuration leaves out."""
    if not roots:
        return {}
    anything = dependencies.closure(roots, rules, Exclusions(), reverse=True).paths
    groups: defaultdict[Exclusions, set[int]] = defaultdict(set)
    for path in anything:
        if wanted is None or path in wanted:
            name = dependencies.image.path_string(path)
            groups[exclusions_of(dependencies.config, name)].add(path)
    return groups
