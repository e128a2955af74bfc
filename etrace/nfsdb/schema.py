# SPDX-License-Identifier: Apache-2.0
"""What a database image holds: tables, columns, their types and units.

One row here is one column of `.nfsdb.img`. `docs/image.md` is made from it. A list of a row is a
pair of columns, `X.start` (n_rows + 1) and a table of its own that it points into. Row numbers and ids
are positions; NONE stands for "no row".

Sources of the meanings: docs/nfsdb-json.md, seed 001.
"""

from __future__ import annotations

from dataclasses import dataclass

#: raise it whenever a column changes its meaning; readers refuse what is newer
SCHEMA_VERSION = 1
MAGIC = b"ETRACEDB"
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
    Table("strings", "every string, each once, sorted as bytes", (
        C("start", "<u8", "offset of each string in `bytes`; n + 1 of them"),
        C("bytes", "|u1", "their bytes, one after the other"),
    )),
    Table("paths", "every path that was opened, written or executed; sorted as bytes", (
        C("string", "<u4", "its string"),
        C("mode", "|u1", "type bits of lstat when the trace was parsed, 0emmmm00; 0: gone"),
        C("size", "<i8", "size by lstat then", "bytes"),
        C("opens.start", "<u8", "its opens in `path_opens`"),
    )),
    Table("path_opens", "opens of each path, by open row", (C("open", "<u4", "row of `opens`"),)),
    Table("executions", "one exec of one process (index 0: before its first), by (upid, index)", (
        C("upid", "<i8", "sequence << 22 | pid"),
        C("index", "<i4", "which execution of the upid"),
        C("start_ns", "<i8", "first event since the trace began", "ns"),
        C("elapsed_ns", "<i8", "", "ns"),
        C("parent", "<i4", "row of the execution that forked it, NONE at a root"),
        C("binary", "<i4", "row of `paths`, NONE for index 0"),
        C("cwd", "<u4", "its string"),
        C("status", "<i2", "exit status, on the last index of a upid; NONE elsewhere"),
        C("argv.start", "<u8", "its arguments in `arguments`"),
        C("opens.start", "<u8", "its opens in `opens`"),
        C("children.start", "<u8", "in `children`"),
        C("readers.start", "<u8", "in `pipe_readers`: executions that could read what it wrote"),
        C("cpus.start", "<u8", "in `cpus`"),
        C("environment.start", "<u8", "in `environment`"),
        C("wrapper", "<i8", "upid of the wrapping shell, NONE without (pp)"),
        C("compilation", "<i4", "row of `compilations` or NONE (pp)"),
        C("linked", "<i4", "row of `linked` or NONE (pp)"),
    )),
    Table("arguments", "argv of each execution", (C("string", "<u4", ""),)),
    Table("opens", "files of each execution, by original then resolved path", (
        C("path", "<u4", "row of `paths`: resolved"),
        C("original", "<u4", "string: as given, absolute"),
        C("open_ns", "<i8", "CLOCK_MONOTONIC", "ns"),
        C("close_ns", "<i8", "CLOCK_MONOTONIC, 0 for renames and links", "ns"),
        C("mode", "|u1", "0emmmmxx; xx 0 read, 1 write, 2 both"),
        C("size", "<i8", "by lstat of the original path", "bytes"),
        C("execution", "<u4", "row of `executions`"),
    )),
    Table("children", "forks", (
        C("upid", "<i8", ""), C("flags", "<u4", "of clone"),
        C("execution", "<i4", "row of its index 0, NONE when it has no entry"),
    )),
    Table("pipe_readers", "", (C("execution", "<u4", "row"),)),
    Table("cpus", "", (C("cpu", "<u4", ""), C("time_ns", "<i8", "since the trace began", "ns"))),
    Table("environment", "", (C("string", "<u4", "NAME=value"),)),
    Table("mounts", "in order of time", (
        C("execution", "<i4", ""), C("time_ns", "<i8", "", "ns"), C("kind", "|u1", "0 mount, 1 umount"),
        C("source", "<i4", "string or NONE"), C("target", "<i4", ""), C("type", "<i4", ""),
        C("flags", "<u8", ""), C("ok", "|u1", ""),
    )),
    Table("linked", "linked modules and archives (pp)", (
        C("execution", "<u4", ""), C("path", "<u4", "row of `paths`"),
        C("type", "|u1", "1 linked, 0 archive"),
        C("kind", "|u1", "0 unknown, 1 executable, 2 shared object, 3 relocatable, 4 archive, 5 thin archive"),
    )),
    Table("compilations", "(pp)", (
        C("execution", "<u4", ""), C("type", "|u1", "`s`: 1 C, 2 C++, ..."), C("separate", "|u1", "`p`"),
        C("language", "<u4", "string: c, c++, rust, go, ..."), C("compiler", "<u4", "string: gcc, clang, ..."),
        C("files.start", "<u8", "in `compilation_files`"), C("includes.start", "<u8", ""),
        C("defines.start", "<u8", ""), C("undefines.start", "<u8", ""), C("headers.start", "<u8", ""),
        C("objects.start", "<u8", ""),
    )),
    Table("patterns", "exclusion patterns of commands (pp)", (C("string", "<u4", "bit number = row"),)),
)
