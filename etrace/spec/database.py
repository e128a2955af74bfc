# SPDX-License-Identifier: Apache-2.0
"""What a database image holds: tables, columns, their types and units.

One row here is one column of `.nfsdb.img`. What a row has many of lies in a table of its own: the
column `X.start` (one element more than rows) says where each begin. Row numbers are positions;
NONE stands for "no row".

Sources of the meanings: docs/nfsdb-json.md, seed 001.
"""

from __future__ import annotations

from dataclasses import dataclass

#: no row, no status, no wrapper
NONE = -1


@dataclass(frozen=True, slots=True)
class Column:
    """`dtype` as NumPy writes it, little endian; `unit` for people, empty for a pure number."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length, except those ending in `.start`, which have one element more."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


C = Column
TABLES: tuple[Table, ...] = (
    Table(
        "strings",
        "every string, each once, sorted as bytes",
        (
            C("start", "<u8", "offset of each string in `bytes`; n + 1 of them"),
            C("bytes", "|u1", "their bytes, one after the other"),
        ),
    ),
    Table(
        "paths",
        "every path that was opened, written or executed; sorted as bytes",
        (
            C("string", "<u4", "its string"),
            C("mode", "|u1", "type bits of lstat when the trace was parsed, 0emmmm00; 0: gone"),
            C("size", "<i8", "size by lstat then", "bytes"),
            C("opens.start", "<u8", "its opens in `path_opens`"),
        ),
    ),
    Table("path_opens", "opens of each path, by open row", (C("open", "<u4", "row of `opens`"),)),
    Table(
        "executions",
        "one exec of one process (index 0: before its first), by (upid, index)",
        (
            C("upid", "<i8", "sequence << 22 | pid"),
            C("index", "<i4", "which execution of the upid"),
            C("start_ns", "<i8", "first event since the trace began", "ns"),
            C("elapsed_ns", "<i8", "until its last event or the next exec", "ns"),
            C("parent", "<i4", "row of the execution that forked it, NONE at a root"),
            C("binary", "<i4", "row of `paths`, NONE for index 0"),
            C("cwd", "<u4", "its string"),
            C("status", "<i2", "exit status, on the last index of a upid; NONE elsewhere"),
            C("argv.start", "<u8", "its arguments in `arguments`"),
            C("opens.start", "<u8", "its opens in `opens`"),
            C("children.start", "<u8", "in `children`"),
            C(
                "readers.start",
                "<u8",
                "in `pipe_readers`: executions that could read what it wrote",
            ),
            C("cpus.start", "<u8", "in `cpus`"),
        ),
    ),
    Table("arguments", "argv of each execution", (C("string", "<u4", "one argument"),)),
    Table(
        "opens",
        "files of each execution, by original then resolved path",
        (
            C("path", "<u4", "row of `paths`: resolved"),
            C("original", "<u4", "string: as given, absolute"),
            C("open_ns", "<i8", "CLOCK_MONOTONIC", "ns"),
            C("close_ns", "<i8", "CLOCK_MONOTONIC, 0 for renames and links", "ns"),
            C("mode", "|u1", "0emmmmxx; xx 0 read, 1 write, 2 both"),
            C("size", "<i8", "by lstat of the original path", "bytes"),
            C("execution", "<u4", "row of `executions`"),
        ),
    ),
    Table(
        "children",
        "forks",
        (
            C("upid", "<i8", "of the child"),
            C("flags", "<u4", "of clone"),
            C("execution", "<i4", "row of its index 0, NONE when it has no entry"),
        ),
    ),
    Table(
        "pipe_readers",
        "executions that could read what one wrote to a pipe",
        (C("execution", "<u4", "row"),),
    ),
    Table(
        "cpus",
        "where each execution ran, when that changed",
        (C("cpu", "<u4", "logical CPU"), C("time_ns", "<i8", "since the trace began", "ns")),
    ),
    Table(
        "environment",
        "variables by process, in order of upid, then string",
        (
            C("upid", "<i8", "process that was started with it"),
            C("string", "<u4", "NAME=value"),
        ),
    ),
    Table(
        "mounts",
        "in order of time",
        (
            C("execution", "<i4", ""),
            C("time_ns", "<i8", "", "ns"),
            C("kind", "|u1", "0 mount, 1 umount"),
            C("source", "<i4", "string or NONE"),
            C("target", "<i4", ""),
            C("type", "<i4", ""),
            C("flags", "<u8", ""),
            C("ok", "|u1", ""),
        ),
    ),
)
