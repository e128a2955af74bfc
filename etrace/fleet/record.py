# SPDX-License-Identifier: Apache-2.0
"""An image -> the rows of one build in a fleet, redacted. Needs pyarrow.

Each path and string is rewritten once, and columns of text are dictionaries. Executions without a
program (forks) have no row: what they opened is their command's.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from libetrace.image.file import Image

import etrace
from etrace.fleet.redaction import Redactor
from etrace.fleet.schema import TABLES, FleetTable, arrow_schema
from etrace.nfsdb.environment import all_variables
from etrace.nfsdb.trace_time import build_end_ns
from etrace.origin.origins import Origins
from etrace.query.changes.matching import Side
from etrace.query.files import written_paths
from etrace.query.hashes import Hashes
from etrace.query.linked_modules import Module, linked_modules
from etrace.query.rows.commands import nearest_commands
from etrace.query.rows.file_kinds import FileKind, FileKinds
from etrace.query.rows.frames import ACCESS, load_pyarrow
from etrace.query.rows.targets import Targets
from etrace.query.rows.usage import COLUMNS, Usages
from etrace.query.totals import totals
from etrace.spec.database import NONE
from etrace.texts import text_of

#: kind of what ran on the way to a module
PROGRAM = "program"
LEFT_OUT = frozenset((FileKind.TEMPORARY, FileKind.DIRECTORY, FileKind.DEVICE))
NS_PER_US = 1_000
EPOCH = datetime.datetime(1970, 1, 1)  # UTC, as the column is
#: how far a driver may be above its stage: gcc, collect2, ld
MAX_DRIVERS = 4


@dataclass(frozen=True, slots=True)
class About:
    """What the user says of a build."""

    build: str
    project: str
    time: datetime.datetime
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Sequence[str] = ()
    with_commands: bool = True
    with_packages: bool = True


def end_of(image: Image) -> datetime.datetime:
    """Return when a build ended, in UTC: the time of its trace, else of its image.

    In microseconds, because builds of one project may end in the same second.
    """
    return EPOCH + datetime.timedelta(microseconds=build_end_ns(image) // NS_PER_US)


class Record:
    """The tables of one build; EtraceError before `cas pp`."""

    def __init__(self, image: Image, about: About, redactor: Redactor) -> None:
        self._pa = load_pyarrow()
        self._image, self._about, self._redactor = image, about, redactor
        self._side, self._kinds = Side(image, words=redactor.words), FileKinds(image)
        self._table = image["executions"]
        self._nearest = nearest_commands(self._table)
        self._hashes, self._dependencies = Hashes(image), Dependencies(image)

    def __iter__(self) -> Iterator[tuple[FleetTable, Any]]:
        """Yield the tables with their rows, sorted."""
        for table in TABLES.values():
            columns = getattr(self, f"make_{table.name}")()
            yield table, self._arranged(table, columns)

    def _arranged(self, table: FleetTable, columns: dict[str, Any]) -> Any:
        pa, schema = self._pa, arrow_schema(table, self._pa)
        n_rows = len(next(iter(columns.values())))
        columns["build"] = pa.repeat(self._about.build, n_rows)
        arrays = [
            column if isinstance(column := columns[f.name], pa.Array) else pa.array(column, f.type)
            for f in schema
        ]
        made = pa.table(arrays, schema.names).cast(schema)
        return made.sort_by([(name, "ascending") for name in table.order])

    # ---- names ----

    @cached_property
    def _paths(self) -> list[str]:
        """Names of paths, by row."""
        count = self._image["paths"].n_rows
        return [self._redactor.path(self._side.paths[row]) for row in range(count)]

    def _named(self, rows: Sequence[int]) -> Any:
        """Return the names of rows of `paths` as an array, null for NONE."""
        pa = self._pa
        found = pa.array([None if row == NONE else row for row in rows], pa.int32())
        return pa.array(self._paths, pa.string()).take(found)

    def _step(self, row: int) -> str:
        return text_of(self._side.normal(os.fsencode(self._side.label(row))))

    @cached_property
    def _commands(self) -> list[int]:
        """Executions that have a program."""
        return [row for row, binary in enumerate(self._table["binary"]) if binary != NONE]

    # ---- builds and commands ----

    def make_builds(self) -> dict[str, Any]:
        """Return the row of the build."""
        found, about = totals(self._image), self._about
        return {
            "project": [about.project], "date": [about.time.date()], "time": [about.time],
            "labels": [sorted(about.labels.items())], "variables": [self._variables()],
            "elapsed_ns": [found.elapsed_ns], "cpu_ns": [found.cpu_ns],
            "commands": [found.commands], "failed": [found.failed], "files": [found.files],
            "opens": [found.opens], "modules": [found.linked_modules],
            "compilations": [found.compilations], "etrace": [etrace.__version__],
        }  # fmt: skip

    def _variables(self) -> list[tuple[str, str]]:
        texts = map(text_of, all_variables(self._image))
        found: dict[str, str] = {}
        for name, value in self._redactor.variables(texts, self._about.environment):
            found.setdefault(name, value)  # of several values the first
        return sorted(found.items())

    def make_executions(self) -> dict[str, Any]:
        """Return a row for each command."""
        table, rows, side = self._table, self._commands, self._side
        usages, targets = Usages(self._image), Targets(self._image)
        status = table["status"]
        parents = [table["parent"][row] for row in rows]
        return {
            "execution": rows,
            "parent": [self._command_of(row) for row in parents],
            "program": self._named([table["binary"][row] for row in rows]),
            "step": [self._step(row) for row in rows],
            "target": [self._target(targets, row) for row in rows],
            "command": [self._command(row) for row in rows],
            "cwd": [self._redactor.path(side.cwd(row)) for row in rows],
            "start_ns": [table["start_ns"][row] for row in rows],
            "elapsed_ns": [table["elapsed_ns"][row] for row in rows],
            "status": [None if status[row] == NONE else status[row] for row in rows],
            **{name: [usages.value(row, name) for row in rows] for name in COLUMNS},
        }

    def _command_of(self, row: int) -> int | None:
        found = NONE if row == NONE else self._nearest[row]
        return None if found == NONE else found

    def _target(self, targets: Targets, row: int) -> str | None:
        names = targets.names(row)
        return self._redactor.path(self._side.normal(names[0])) if names else None

    def _command(self, row: int) -> str | None:
        return self._redactor.command(self._side.argv(row)) if self._about.with_commands else None

    def make_opens(self) -> dict[str, Any]:
        """Return a row for each file that a command opened."""
        opens, pa = self._image["opens"], self._pa
        owners = [self._command_of(row) for row in opens["execution"]]
        return {
            "path": self._named(opens["path"]),
            "execution": pa.array(owners, pa.int32()),
            "access": [ACCESS[mode & 3] for mode in opens["mode"]],
        }

    def make_compilations(self) -> dict[str, Any]:
        """Return a row for each compilation."""
        table, image = self._image["compilations"], self._image
        rows, string = range(table.n_rows), image.string
        sources, objects = image["compilation_files"]["string"], image["compilation_objects"]
        return {
            "execution": list(table["execution"]),
            "language": [text_of(string(each)) for each in table["language"]],
            "compiler": self._named([self._table["binary"][each] for each in table["execution"]]),
            "sources": [
                [self._redactor.path(self._side.normal(string(sources[i])))
                 for i in table.span("files.start", row)]
                for row in rows
            ],
            "objects": [
                [self._paths[objects["path"][i]] for i in table.span("objects.start", row)]
                for row in rows
            ],
        }  # fmt: skip

    # ---- modules ----

    @cached_property
    def _modules(self) -> list[Module]:
        return linked_modules(self._image, with_copies=True)

    @cached_property
    def _closures(self) -> dict[int, dict[str, str]]:
        """Names of what each module was made of and by, with their kinds."""
        found = {}
        for module in self._modules:
            closures = self._dependencies.closures([module.path], Rules())
            executions = {row for closure in closures for row in closure.executions}
            kind_of = self._kinds.among(executions)
            paths = {path for closure in closures for path in closure.paths} - {module.path}
            kinds = {self._paths[row]: kind_of(row).value for row in sorted(paths)
                     if kind_of(row) not in LEFT_OUT}  # fmt: skip
            programs = {self._table["binary"][row] for row in self._on_the_way(executions)}
            kinds |= {self._paths[row]: PROGRAM for row in sorted(programs - {NONE})}
            found[module.path] = kinds
        return found

    def _on_the_way(self, executions: Iterable[int]) -> set[int]:
        """Return the commands on the way, with the drivers whose stages they are."""
        parent = self._table["parent"]
        drivers = {*self._image["compilations"]["execution"], *self._image["linked"]["execution"]}
        found = set()
        for row in executions:
            at = self._nearest[row]
            for _ in range(MAX_DRIVERS):
                if at == NONE:
                    break
                if at in drivers or at == self._nearest[row]:
                    found.add(at)
                at = self._nearest[parent[at]] if parent[at] != NONE else NONE
        return found

    def make_modules(self) -> dict[str, Any]:
        """Return a row for each linked module and copy."""
        modules, hashes = self._modules, [self._hash(module.path) for module in self._modules]
        return {
            "path": [self._paths[module.path] for module in modules],
            "kind": [module.kind_name for module in modules],
            "copy_of": [None if m.copy_of is None else self._paths[m.copy_of] for m in modules],
            "execution": [self._command_of(max(module.executions)) for module in modules],
            "size_bytes": [self._size(module.path) for module in modules],
            "n_inputs": [len(self._closures[module.path]) for module in modules],
            "sha256": [each[0] for each in hashes],
            "git_blob": [each[1] for each in hashes],
        }

    def make_closures(self) -> dict[str, Any]:
        """Return a row for each file of each module."""
        rows = sorted(
            (path, self._paths[module], kind)
            for module, kinds in self._closures.items()
            for path, kind in kinds.items()
        )
        names = ("path", "module", "kind")
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    # ---- files ----

    def _size(self, path: int) -> int | None:
        size = self._kinds.size_of(path)
        return None if size == NONE else size

    def _hash(self, path: int) -> tuple[str | None, str | None, str | None]:
        """Return SHA-256 and blob id of a content that the build had, and the state."""
        found = self._hashes.of(path)
        if found is None:
            return None, None, None
        if not found.is_of_build:
            return None, None, found.state
        return found.sha256, found.git_blob, found.state

    def make_files(self) -> dict[str, Any]:
        """Return a row for each name of files."""
        image = self._image
        written = written_paths(image)
        packages = self._packages(written)
        rows: dict[str, int] = {}
        for row, name in enumerate(self._paths):
            rows.setdefault(name, row)  # several made-up names are one
        found = list(rows.values())
        hashes = [self._hash(row) for row in found]
        return {
            "path": list(rows),
            "kind": [self._kinds.of(row).value for row in found],
            "is_written": [bool(written[row]) for row in found],
            "size_bytes": [self._size(row) for row in found],
            "sha256": [each[0] for each in hashes],
            "git_blob": [each[1] for each in hashes],
            "hash_state": [each[2] for each in hashes],
            "package": [packages.get(image.path_string(row)) for row in found],
        }

    def _packages(self, written: bytearray) -> Mapping[bytes, str]:
        if not self._about.with_packages:
            return {}
        path_string = self._image.path_string
        read = [path_string(row) for row, is_written in enumerate(written) if not is_written]
        return {path: package.purl for path, package in Origins(read).packages.items()}
