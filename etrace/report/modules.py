# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> what they are made of, as `cas deps` says it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.rules import Rules
from libetrace.image.file import Image

from etrace.query.classes.file_kinds import USUAL, FileKinds
from etrace.query.linked_modules import Module, linked_modules
from etrace.report.commands import Commands
from etrace.report.pack import shown

#: the largest modules are walked from
MAX_MODULES = 100


def describe(commands: Commands, number: dict[int, int]) -> list[dict[str, Any]]:
    """Describe the largest modules; `number` gives the files of the page by row of `paths`."""
    image = commands.image
    if "linked" not in image.tables:
        return []
    size = image["paths"]["size"]
    found = sorted(linked_modules(image), key=lambda m: (-size[m.path], m.path))[:MAX_MODULES]
    dependencies, kinds = Dependencies(image), FileKinds(image)
    return [_describe(commands, dependencies, kinds, number, module) for module in found]


def _describe(
    commands: Commands,
    dependencies: Dependencies,
    kinds: FileKinds,
    number: dict[int, int],
    module: Module,
) -> dict[str, Any]:
    image: Image = commands.image
    size = image["paths"]["size"]
    closures = dependencies.closures([module.path], Rules())
    kind_of = kinds.among({each for closure in closures for each in closure.executions})
    n_files, n_bytes = Counter[str](), Counter[str]()
    for path in join(closures, [module.path]):
        if (kind := kind_of(path)) in USUAL:
            n_files[kind.value] += 1
            n_bytes[kind.value] += max(0, size[path])
    return {
        "path": shown(image.path_string(module.path)),
        "file": number.get(module.path, -1),
        "kind": module.kind_name,
        "bytes": max(0, size[module.path]),
        "commands": [commands.of(row) for row in module.executions],
        "made_of": [[kind, n, n_bytes[kind]] for kind, n in n_files.most_common()],
    }
