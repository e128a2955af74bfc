# SPDX-License-Identifier: Apache-2.0
"""Rows of a database -> records of plain values, keyed as the JSON of queries is (docs/queries.md).

Paths and arguments are text by the surrogateescape convention; times are strings of nanoseconds,
because readers of JSON in other languages round large numbers.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from typing import Any

from libetrace.image.file import Image

from etrace.query.rows.classes import Classes
from etrace.query.rows.file_kinds import FileKinds
from etrace.query.rows.targets import Targets
from etrace.query.rows.usage import Usages
from etrace.spec.database import ACCESS, EXISTS, NONE, file_type

LETTERS = ("r", "w", "rw", "rw")


class Records:
    """Makes records of one image."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.kinds = Classes(image)
        self.usages = Usages(image)
        self.targets = Targets(image)
        self.file_kinds = FileKinds(image)
        self.text = lru_cache(maxsize=1 << 14)(self._decode)

    def _decode(self, string: int) -> str:
        return os.fsdecode(self.image.string(string))

    def path(self, row: int) -> str:
        """Return the text of a row of `paths`, empty for NONE."""
        return "" if row == NONE else self.text(self.image["paths"]["string"][row])

    def argv(self, row: int) -> list[str]:
        """Return the arguments of an execution."""
        arguments = self.image["arguments"]["string"]
        span = self.image["executions"].span("argv.start", row)
        return [self.text(arguments[i]) for i in span]

    def directory(self, row: int) -> str:
        """Return the working directory of an execution."""
        return self.text(self.image["executions"]["cwd"][row])

    def language(self, row: int) -> str:
        """Return the language of a row of `compilations`."""
        return self.text(self.image["compilations"]["language"][row])

    def key(self, row: int) -> tuple[int, int]:
        """Return (upid, index) of an execution; (-1, 0) for NONE."""
        executions = self.image["executions"]
        return (-1, 0) if row == NONE else (executions["upid"][row], executions["index"][row])

    def open(self, row: int) -> dict[str, Any]:
        """Return one row of `opens`."""
        opens = self.image["opens"]
        pid, index = self.key(opens["execution"][row])
        mode, path = opens["mode"][row], opens["path"][row]
        is_link = stat.S_ISLNK(file_type(mode))
        return {
            "filename": self.path(path),
            "original_path": self.text(opens["original"][row]),
            "open_timestamp": str(opens["open_ns"][row]),
            "close_timestamp": str(opens["close_ns"][row]),
            "ppid": pid,
            "pidx": index,
            "type": self.kinds.of_path(path),
            "kind": self.file_kinds.of(path).value,
            "access": LETTERS[mode & ACCESS],
            "exists": int(bool(mode & EXISTS)),
            "link": int(is_link),
            "size": opens["size"][row],
        }

    def file(self, path: int) -> dict[str, Any]:
        """Return one row of `paths` with the keys of an open, those of its use null."""
        mode = self.file_kinds.temporaries.mode_of(path)
        unknown = ("original_path", "open_timestamp", "close_timestamp", "ppid", "pidx", "access")
        return {
            "filename": self.path(path),
            **dict.fromkeys(unknown),
            "type": self.kinds.of_path(path),
            "kind": self.file_kinds.of(path).value,
            "exists": int(bool(mode & EXISTS)),
            "link": int(stat.S_ISLNK(file_type(mode))),
            "size": max(0, self.file_kinds.size_of(path)),
        }

    def command(self, row: int) -> dict[str, Any]:
        """Return one row of `executions`."""
        executions, image = self.image["executions"], self.image
        pid, index = self.key(row)
        parent, parent_index = self.key(executions["parent"][row])
        status = executions["status"][row]
        record: dict[str, Any] = {
            "class": self.kinds.of_execution(row),
            "pid": pid,
            "idx": index,
            "ppid": parent,
            "pidx": parent_index,
            "stime": str(executions["start_ns"][row]),
            "etime": str(executions["elapsed_ns"][row]),
            "bin": self.path(executions["binary"][row]),
            "cwd": self.directory(row),
            "command": self.argv(row),
            "status": None if status == NONE else status,
            **self.usages.record(row),
        }
        if self.targets.are_known:
            record["targets"] = self.target_names(row) or None
        if not self.kinds.are_known:
            return record
        linked = image["linked"]["path"]
        if row in self.kinds.links:
            record["linked"] = [self.path(linked[i]) for i in self.kinds.links[row]]
        if row in self.kinds.compilations:
            record |= self._compiled(self.kinds.compilations[row])
        return record

    def target_names(self, row: int) -> list[str]:
        """Return the names of the target of an execution, empty when it is not known."""
        return [os.fsdecode(name) for name in self.targets.names(row)]

    def _compiled(self, row: int) -> dict[str, Any]:
        language = self.language(row)
        sources, objects = self.sources(row), self.objects(row)
        return {"compiled": dict.fromkeys(sources, language), "objects": objects}

    def _strings(self, table: str, column: str, row: int) -> list[str]:
        strings = self.image[table]["string"]
        return [self.text(strings[i]) for i in self.image["compilations"].span(column, row)]

    def sources(self, row: int) -> list[str]:
        """Return what a row of `compilations` compiled."""
        return self._strings("compilation_files", "files.start", row)

    def objects(self, row: int) -> list[str]:
        """Return what a row of `compilations` made."""
        paths = self.image["compilation_objects"]["path"]
        return [self.path(paths[i]) for i in self.image["compilations"].span("objects.start", row)]

    def compilation(self, row: int) -> dict[str, Any]:
        """Return one row of `compilations`, with its command."""
        table, image = self.image["compilations"], self.image
        definitions = image["compilation_definitions"]
        rows = [
            (self.text(definitions["name"][i]), definitions["value"][i], definitions["is_undef"][i])
            for i in table.span("definitions.start", row)
        ]
        return {
            "command": self.command(table["execution"][row]),
            "source_type": self.language(row),
            "compiled_files": self.sources(row),
            "include_paths": self._strings("compilation_includes", "includes.start", row),
            "headers": self._strings("compilation_headers", "headers.start", row),
            "defs": [{"name": n, "value": self.text(v)} for n, v, is_undef in rows if not is_undef],
            "undefs": [n for n, _, is_undef in rows if is_undef],
            "objects": self.objects(row),
            "is_child": int(table["is_child"][row]),
        }
