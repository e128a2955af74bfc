# SPDX-License-Identifier: Apache-2.0
"""Classes of files (linked, compiled, plain) and of executions (compiler, linker, command).

Reads the tables `linked` and `compilations` that `cas pp` adds (etrace/spec/database.toml).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from libetrace.image.file import Image, Table
from libetrace.image.string_lookup import used_strings

from etrace.errors import EtraceError

PRODUCT_HINT = "make them: cas pp"
ARCHIVE, EXECUTABLE, SHARED, PARTIAL = range(4)  # linked.kind


def product(image: Image, table: str, what: str) -> Table:
    """Return a table of `cas pp`; EtraceError when the image has none."""
    if table not in image.tables:
        raise EtraceError(f"{image.path} holds no {what} yet", PRODUCT_HINT)
    return image[table]


class Classes:
    """The classes of one image, found on demand and remembered."""

    def __init__(self, image: Image) -> None:
        self._image = image

    @property
    def are_known(self) -> bool:
        """Whether `cas pp` has found modules and compilations."""
        return {"linked", "compilations"} <= self._image.tables.keys()

    @cached_property
    def linked_kind(self) -> Mapping[int, int]:
        """Path row of each linked module -> its `kind`; the last link of a path counts."""
        linked = product(self._image, "linked", "linked modules")
        return dict(zip(linked["path"], linked["kind"], strict=True))

    @cached_property
    def links(self) -> Mapping[int, list[int]]:
        """Execution row -> rows of `linked`."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for row, execution in enumerate(
            product(self._image, "linked", "linked modules")["execution"]
        ):
            found[execution].append(row)
        return found

    @cached_property
    def compilations(self) -> Mapping[int, int]:
        """Execution row -> row of `compilations`."""
        table = product(self._image, "compilations", "compilations")
        return {execution: row for row, execution in enumerate(table["execution"])}

    @cached_property
    def compiled_type(self) -> Mapping[int, int]:
        """String row of each compiled file -> type of its last compilation: 1 C, 2 C++, 0 other."""
        table = product(self._image, "compilations", "compilations")
        files = self._image["compilation_files"]["string"]
        return {
            files[i]: kind
            for row, kind in enumerate(table["type"])
            for i in table.span("files.start", row)
        }

    @cached_property
    def compiled(self) -> bytearray:
        """A byte for each row of `strings`, 1 for the names of compiled files."""
        files = product(self._image, "compilation_files", "compilations")
        return used_strings(files["string"], self._image.n_strings)

    def of_path(self, path: int) -> str | None:
        """Return linked, compiled or plain for a row of `paths`; None before `cas pp`."""
        if not self.are_known:
            return None
        if path in self.linked_kind:
            return "linked"
        string = self._image["paths"]["string"][path]
        return "compiled" if string in self.compiled_type else "plain"

    def of_execution(self, row: int) -> str | None:
        """Return compiler, linker or command for an execution; None before `cas pp`."""
        if not self.are_known:
            return None
        if row in self.compilations:
            return "compiler"
        return "linker" if row in self.links else "command"
