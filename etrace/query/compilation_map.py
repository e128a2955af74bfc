# SPDX-License-Identifier: Apache-2.0
"""Linked modules -> their compiled sources; files -> the modules that depend on them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property

from libetrace.depend.dependencies import Dependencies, join
from libetrace.depend.rules import Rules
from libetrace.image.file import Image

from etrace.query.classes.kinds import product
from etrace.query.rdeps import rdeps


class Compiled:
    """The sources of each object."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._table = product(image, "compilations", "compilations")

    @cached_property
    def by_object(self) -> dict[int, set[int]]:
        """Path row of each object -> string rows of its sources."""
        out: dict[int, set[int]] = {}
        files = self._image["compilation_files"]["string"]
        objects = self._image["compilation_objects"]["path"]
        for row in range(self._table.n_rows):
            own = [files[i] for i in self._table.span("files.start", row)]
            for i in self._table.span("objects.start", row):
                out.setdefault(objects[i], set()).update(own)
        return out

    def sources(self, paths: Sequence[int]) -> list[bytes]:
        """Return the sources of all objects among some paths, sorted as bytes."""
        strings = {s for path in paths for s in self.by_object.get(path, ())}
        return sorted(self._image.string(s) for s in strings)


def compilation_map(
    dependencies: Dependencies, modules: Sequence[int], rules: Rules
) -> dict[str, list[str]]:
    """Return the path of each module -> the sources that were compiled for it."""
    compiled = Compiled(dependencies.image)
    out = {}
    for module in modules:
        found = [*join(dependencies.closures([module], rules), ()), module]
        out[os.fsdecode(dependencies.image.path_string(module))] = [
            os.fsdecode(source) for source in compiled.sources(found)
        ]
    return out


def reverse_map(
    dependencies: Dependencies, files: Sequence[int], rules: Rules
) -> dict[str, list[str]]:
    """Return each file's path -> paths of the linked modules that depend on it."""
    image = dependencies.image
    out = {}
    for file in files:
        path = image.path_string(file)
        found = rdeps(dependencies, [path], rules)
        out[os.fsdecode(path)] = [os.fsdecode(image.path_string(row)) for row in found]
    return out
