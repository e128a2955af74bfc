# SPDX-License-Identifier: Apache-2.0
"""Compilations -> the tables `compilations*` of the image (etrace/spec/database.py)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from libetrace.image.file import NewTable
from libetrace.image.header import DTYPES

from etrace.compilers.invocation import Definition
from etrace.postprocess.run import Strings, product
from etrace.spec.database import PRODUCTS

UNREAD = "unread_response_files"
TABLES = tuple(
    table for table in PRODUCTS if table.name.startswith("compilation") or table.name == UNREAD
)
TYPES = {"c": 1, "c++": 2}


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation, its paths absolute and resolved; `objects` are rows of `paths`."""

    execution: int
    language: str
    is_child: bool
    files: Sequence[bytes]
    includes: Sequence[bytes]
    definitions: Sequence[Definition]
    headers: Sequence[bytes]
    objects: Sequence[int]


class CompilationTables:
    """The columns of these tables, to be appended to."""

    def __init__(self, strings: Strings) -> None:
        self._number = strings.number
        self._columns: Mapping[str, Mapping[str, array[int]]] = {
            table.name: {
                c.name: array(DTYPES[c.dtype][0], [0] * c.name.endswith(".start"))
                for c in table.columns
            }
            for table in TABLES
        }
        starts = self._columns["compilations"]
        self._owned = [
            (starts[f"{name}.start"], next(iter(self._columns[f"compilation_{name}"].values())))
            for name in ("files", "includes", "definitions", "headers", "objects")
        ]

    def add(self, it: Compilation) -> None:
        """Append one compilation; they come in order of their executions."""
        number, main = self._number, self._columns["compilations"]
        main["execution"].append(it.execution)
        main["language"].append(number(it.language.encode()))
        main["type"].append(TYPES.get(it.language, 0))
        main["is_child"].append(it.is_child)
        definitions = self._columns["compilation_definitions"]
        for each in it.definitions:
            definitions["name"].append(number(each.name))
            definitions["value"].append(number(each.value))
            definitions["is_undef"].append(each.is_undef)
        self._columns["compilation_files"]["string"].extend(map(number, it.files))
        self._columns["compilation_includes"]["string"].extend(map(number, it.includes))
        self._columns["compilation_headers"]["string"].extend(map(number, it.headers))
        self._columns["compilation_objects"]["path"].extend(it.objects)
        for start, column in self._owned:
            start.append(len(column))

    def add_unread(self, unread: Mapping[int, Iterable[bytes]]) -> None:
        """Append the response files that are gone, by row of the execution that named them."""
        columns = self._columns[UNREAD]
        for row, paths in sorted(unread.items()):
            for path in paths:
                columns["execution"].append(row)
                columns["string"].append(self._number(path))

    def tables(self) -> list[NewTable]:
        """Return all of them, in the order of the schema."""
        return [product(name, *columns.values()) for name, columns in self._columns.items()]
