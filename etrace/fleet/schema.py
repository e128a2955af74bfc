# SPDX-License-Identifier: Apache-2.0
"""The tables of a fleet: columns, types, the order of rows, and since which version each exists.

A part of a dataset is of one version, which its path names. A column that is newer than a part is
null there, so parts of all versions are read together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: version of what is written; all from 1 on are read
VERSION = 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `kind` is one of `arrow_type`; `since` is the version that brought it."""

    name: str
    kind: str
    meaning: str
    since: int = 1


@dataclass(frozen=True, slots=True)
class FleetTable:
    """A table; its rows are sorted by the columns of `order`."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]

    def at(self, version: int) -> tuple[Column, ...]:
        """Return the columns that parts of a version have."""
        return tuple(column for column in self.columns if column.since <= version)


_BUILD = Column("build", "text", "id of the build")
_EXECUTION = Column("execution", "int32", "number of the command in its build")
_SHA256 = Column("sha256", "text", "hexadecimal digits; null without a hash of the build")
_BLOB = Column("git_blob", "text", "git's id of the content")

TABLES = {
    table.name: table
    for table in (
        FleetTable(
            "builds",
            "one row for each build",
            (
                _BUILD,
                Column("project", "text", "what was built"),
                Column("date", "date", "day of `time`"),
                Column("time", "time", "end of the build, in UTC"),
                Column("labels", "map", "what `--label` said: commit, team, runner, .."),
                Column("variables", "map", "values that `--environment` let through"),
                Column("elapsed_ns", "int64", "from the first start to the last end"),
                Column("cpu_ns", "int64", "user and system time; null when it is not known"),
                Column("commands", "int32", "programs that were run"),
                Column("failed", "int32", "commands with a status other than 0"),
                Column("files", "int32", "paths that were opened"),
                Column("opens", "int64", "rows of `opens`"),
                Column("modules", "int32", "linked modules"),
                Column("compilations", "int32", "a driver and its stages are one"),
                Column("etrace", "text", "version that wrote the rows"),
            ),
            ("project", "time", "build"),
        ),
        FleetTable(
            "executions",
            "one row for each command",
            (
                _BUILD,
                _EXECUTION,
                Column("parent", "int32", "the command that started it"),
                Column("program", "text", "path"),
                Column("step", "text", "its short name: cc1 lvm.c"),
                Column("target", "text", "what make or ninja worked on; null when not known"),
                Column("command", "text", "quoted as for a shell, without secrets"),
                Column("cwd", "text", "working directory"),
                Column("start_ns", "int64", "since the build began"),
                Column("elapsed_ns", "int64", "until its end or the next exec"),
                Column("status", "int16", "exit status; null when not known"),
                Column("user_ns", "int64", "CPU time in the program"),
                Column("system_ns", "int64", "CPU time in the kernel"),
                Column("max_rss_bytes", "int64", "largest resident memory"),
                Column("rchar_bytes", "int64", "returned by read and the like"),
                Column("wchar_bytes", "int64", "taken by write and the like"),
                Column("n_voluntary_switches", "int64", "gave up the CPU to wait"),
                Column("n_forced_switches", "int64", "was taken off the CPU"),
            ),
            ("program", "step", "cwd", "build", "execution"),
        ),
        FleetTable(
            "opens",
            "one row for each file that a command opened",
            (
                Column("path", "text", "resolved"),
                _BUILD,
                _EXECUTION,
                Column("access", "text", "r, w or rw"),
            ),
            ("path", "build", "execution"),
        ),
        FleetTable(
            "modules",
            "linked modules and their copies",
            (
                _BUILD,
                Column("path", "text", "the module"),
                Column("kind", "text", "archive, executable, shared object, partial link"),
                Column("copy_of", "text", "the module that this is a copy of"),
                _EXECUTION,
                Column("size_bytes", "int64", "null when it was gone"),
                Column("n_inputs", "int32", "its files in `closures`"),
                _SHA256,
                _BLOB,
            ),
            ("path", "build"),
        ),
        FleetTable(
            "compilations",
            "one row for each compilation",
            (
                _BUILD,
                _EXECUTION,
                Column("language", "text", "c, c++, assembler, rust, .."),
                Column("compiler", "text", "path of its program"),
                Column("sources", "texts", "what was compiled"),
                Column("objects", "texts", "what was made"),
            ),
            ("compiler", "build", "execution"),
        ),
        FleetTable(
            "closures",
            "what each module was made of and by, without temporary files and directories",
            (
                Column("path", "text", "a file or program"),
                Column("module", "text", "what was made"),
                _BUILD,
                Column("kind", "text", "a kind of file (source, tool, ..), or program"),
            ),
            ("path", "module", "build"),
        ),
        FleetTable(
            "files",
            "one row for each path that was opened or executed",
            (
                Column("path", "text", "resolved"),
                _BUILD,
                Column("kind", "text", "source, header, object, library, tool, .."),
                Column("is_written", "bool", "whether the build wrote it"),
                Column("size_bytes", "int64", "null when it was gone"),
                _SHA256,
                _BLOB,
                Column("hash_state", "text", "of docs/hashes.md; null when nobody looked"),
                Column("package", "text", "purl of the package that owns it"),
            ),
            ("path", "build"),
        ),
    )
}


def arrow_type(kind: str, pa: Any) -> Any:
    """Return the Arrow type of a kind; `pa` is pyarrow."""
    return {
        "text": pa.string,
        "texts": lambda: pa.list_(pa.string()),
        "map": lambda: pa.map_(pa.string(), pa.string()),
        "time": lambda: pa.timestamp("us"),
        "date": pa.date32,
        "bool": pa.bool_,
        "int16": pa.int16,
        "int32": pa.int32,
        "int64": pa.int64,
    }[kind]()


#: kind -> the type of SQL in both engines
SQL_TYPES = {
    "text": "VARCHAR", "texts": "VARCHAR[]", "map": "MAP(VARCHAR, VARCHAR)", "time": "TIMESTAMP",
    "date": "DATE", "bool": "BOOLEAN", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
}  # fmt: skip


def arrow_schema(table: FleetTable, pa: Any, version: int = VERSION) -> Any:
    """Return the Arrow schema of a table in a version."""
    columns = table.at(version)
    return pa.schema([(column.name, arrow_type(column.kind, pa)) for column in columns])
