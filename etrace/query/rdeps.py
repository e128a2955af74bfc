# SPDX-License-Identifier: Apache-2.0
"""Files -> the linked modules, or all files, that depend on them.

A walk with the order of time turned round. Where the configuration leaves out other things for
other modules, each module's own closure decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from etrace.postprocess.closures import close_modules
from etrace.query.dependencies import Dependencies
from etrace.query.deps import walk
from etrace.query.rules import Rules, read_targets
from etrace.query.targets import find_targets


def rdeps(
    dependencies: Dependencies,
    names: Iterable[bytes],
    rules: Rules,
    *,
    is_exact: bool = True,
    all_files: bool = False,
) -> list[int]:
    """Return sorted rows of `paths`: what depends on any of the files.

    Linked modules only unless `all_files`; EtraceError before `cas pp`. A file does not depend on
    itself, but may on another of them.
    """
    found: set[int] = set()
    for name in names:
        found.update(_of_one(dependencies, [name], rules, is_exact, all_files))
    return sorted(found)


def _of_one(
    dependencies: Dependencies, names: list[bytes], rules: Rules, is_exact: bool, all_files: bool
) -> Iterable[int]:
    if all_files:
        return list(walk(dependencies, names, rules, is_exact=is_exact, reverse=True).paths)
    modules = dependencies.modules
    if _differs_by_module(dependencies) and set(read_targets(names, rules)) == {
        Rules(is_direct=rules.is_direct)
    }:
        rows = set(find_targets(dependencies.image, names, is_exact=is_exact))
        return _of_modules(dependencies, rows, is_direct=rules.is_direct)
    walked = walk(dependencies, names, rules, is_exact=is_exact, reverse=True)
    return [path for path in walked.paths if modules[path]]


def _differs_by_module(dependencies: Dependencies) -> bool:
    config = dependencies.config
    return bool(
        config.additional_module_exclude_pattern_variants
        or config.exclude_command_variants
        or config.module_dependencies_exclude_with_pipes
    )


def _of_modules(dependencies: Dependencies, rows: set[int], *, is_direct: bool) -> list[int]:
    modules, direct, full = close_modules(dependencies.image, dependencies.config)
    lists = direct if is_direct else full
    return [
        module for module in modules if module not in rows and not rows.isdisjoint(lists[module])
    ]
