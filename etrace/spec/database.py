# SPDX-License-Identifier: Apache-2.0
"""What a database image holds: tables, columns, their types and units.

One row here is one column of `.nfsdb.img`. What a row has many of lies in a table of its own: the
column `X.start` (one element more than rows) says where each begin. Row numbers are positions;
NONE stands for "no row".

Source of the meanings: docs/nfsdb-json.md.
"""

from __future__ import annotations

import stat
from typing import NamedTuple

#: no row, no status, no wrapper
NONE = -1
#: bits of the columns `mode`, 0emmmmaa: how a file was opened, its type, whether it was there
ACCESS, TYPE, EXISTS = 0x03, 0x3C, 0x40
#: the bits of a type are those of st_mode, shifted right by so many
TYPE_SHIFT = 10


def file_type(mode: int) -> int:
    """Return the type of a file as `stat.S_IFMT` does, 0 when it is not known."""
    return (mode & TYPE) << TYPE_SHIFT


#: names of the types -> their bits in a mode
FILE_TYPES = {
    "FIFO": stat.S_IFIFO >> TYPE_SHIFT,
    "CHR": stat.S_IFCHR >> TYPE_SHIFT,
    "DIR": stat.S_IFDIR >> TYPE_SHIFT,
    "BLK": stat.S_IFBLK >> TYPE_SHIFT,
    "REG": stat.S_IFREG >> TYPE_SHIFT,
    "LNK": stat.S_IFLNK >> TYPE_SHIFT,
    "SOCK": stat.S_IFSOCK >> TYPE_SHIFT,
}


class Column(NamedTuple):
    """`dtype` as NumPy writes it, little endian; `unit` for people, empty for a pure number."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""


class Table(NamedTuple):
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
            C("inherited.start", "<u8", "files it began with, in `inherited`"),
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
            C("until_ns", "<i8", "end of its last use, NONE when the trace does not tell", "ns"),
        ),
    ),
    Table(
        "changes",
        "what opens did to a file or its name beyond reading and writing, by open",
        (
            C("open", "<u4", "row of `opens`"),
            C(
                "kind",
                "|u1",
                "1 emptied or new, 2 renamed, 3 linked, 4 symbolic link, 5 name gone, 6 first use",
            ),
            C("time_ns", "<i8", "CLOCK_MONOTONIC", "ns"),
            C("name", "<i4", "string: the other name of 2 and 3, the text of 4, else NONE"),
        ),
    ),
    Table(
        "inherited",
        "files that an execution began with as descriptors 0 to 2, opened by another process",
        (
            C("path", "<u4", "row of `paths`"),
            C("execution", "<u4", "row of `executions`"),
            C("descriptor", "|u1", "0 to 2"),
            C("mode", "|u1", "0 read, 1 write, 2 both"),
        ),
    ),
    Table(
        "children",
        "forks",
        (
            C("upid", "<i8", "of the child"),
            C("flags", "<u8", "of clone or clone3"),
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

#: what `cas pp` and `cas cache` add; a table that is missing was not made
_USE = C("use", "<u4", "row of `graph_uses`")
_PIPE = (C("own", "<u4", "row of `executions`"), C("other", "<u4", "row of `executions`"))
#: what dependencies are walked over (docs/dependencies.md): there together or not at all
GRAPH: tuple[Table, ...] = (
    Table(
        "graph_uses",
        "every use of a file: opens by row, then `graph_others`",
        (
            C("begin_ns", "<i8", "stamp of its begin; of the first use of an open", "ns"),
            C("end_ns", "<i8", "stamp of its end", "ns"),
        ),
    ),
    Table(
        "graph_others",
        "inherited descriptors, programs, symbolic links by twos, later uses in `open_uses`",
        (
            C("path", "<u4", "row of `paths`"),
            C("execution", "<u4", "row of `executions`"),
            C("process", "<u4", "row of `graph_processes`"),
            C("kind", "|u1", "1 reads, 2 writes, 4 of a symbolic link, 8 inherited"),
        ),
    ),
    Table(
        "graph_executions",
        "one row for each execution",
        (C("process", "<u4", "row of `graph_processes`: threads share one"),),
    ),
    Table(
        "graph_paths",
        "one row for each path",
        (
            C("writes.start", "<u8", "its writes in `path_writes`"),
            C("reads.start", "<u8", "its reads in `path_reads`"),
            C("ends.start", "<u8", "when what it stood for ended, in `path_ends`"),
            C("last", "<u4", "how many ends come before the last content that was written"),
            C("first", "<i4", "row of its first open, NONE without one; of two at once the write"),
            C("uses", "|u1", "1 opened to read, 2 to write, 4 an open's own path existed, no link"),
        ),
    ),
    Table(
        "graph_processes",
        "processes by their first execution, then one for each symbolic link",
        (
            C("reads.start", "<u8", "what it read, in `process_reads`"),
            C("writes.start", "<u8", "what it wrote, in `process_writes`"),
            C("sources.start", "<u8", "pipes that it read, in `pipe_sources`"),
            C("targets.start", "<u8", "pipes that it wrote to, in `pipe_targets`"),
        ),
    ),
    Table("path_writes", "by path, in order of their begins", (_USE,)),
    Table("path_reads", "by path, the last end first", (_USE,)),
    Table("process_reads", "by process, in order of their begins", (_USE,)),
    Table("process_writes", "by process, the last end first", (_USE,)),
    Table(
        "path_ends",
        "by path, in order of time",
        (
            C("time_ns", "<i8", "stamp", "ns"),
            C("is_away", "|u1", "1 the name is gone, 0 the file is new or empty"),
        ),
    ),
    Table("pipe_sources", "by process of `own`, which could read what `other` wrote", _PIPE),
    Table("pipe_targets", "by process of `own`, which wrote what `other` could read", _PIPE),
)
PRODUCTS: tuple[Table, ...] = (
    Table(
        "added_strings",
        "strings of products that `strings` lacks; their rows count on from those of `strings`",
        (
            C("start", "<u8", "offset of each string in `bytes`; n + 1 of them"),
            C("bytes", "|u1", "their bytes, one after the other, in order of first use"),
        ),
    ),
    Table(
        "response_files",
        "what response files (`@FILE`) held while their commands ran, where that was captured",
        (
            C("upid", "<i8", "process whose command line names it, or names one that names it"),
            C("path", "<u4", "string: absolute path"),
            C("content", "<u4", "string"),
        ),
    ),
    Table(
        "usage",
        "what executions used, one row for each; there when the trace tells of any",
        (
            C("user_ns", "<i8", "CPU time in the program, all threads; NONE: not known", "ns"),
            C("system_ns", "<i8", "CPU time in the kernel; NONE: not known", "ns"),
            C("max_rss_bytes", "<i8", "largest resident memory; NONE: not known", "bytes"),
            C("rchar_bytes", "<i8", "returned by read and the like; NONE: not known", "bytes"),
            C("wchar_bytes", "<i8", "taken by write and the like; NONE: not known", "bytes"),
            C("n_voluntary_switches", "<i8", "gave up the CPU to wait; NONE: not known"),
            C("n_forced_switches", "<i8", "was taken off the CPU; NONE: not known"),
        ),
    ),
    Table(
        "open_uses",
        "uses of the opens that had several, by open, in order of time; there when any had",
        (
            C("open", "<u4", "row of `opens`"),
            C("begin_ns", "<i8", "CLOCK_MONOTONIC", "ns"),
            C("end_ns", "<i8", "CLOCK_MONOTONIC", "ns"),
            C("mode", "|u1", "0 read, 1 write, 2 both"),
        ),
    ),
    Table(
        "linked",
        "modules that executions of linkers and archivers made, by execution",
        (
            C("execution", "<u4", "row of `executions`"),
            C("path", "<u4", "row of `paths`: the module"),
            C("type", "|u1", "0 archive, 1 made by a linker"),
            C("kind", "|u1", "0 archive, 1 executable, 2 shared object, 3 partial link (-r)"),
        ),
    ),
    Table(
        "compilations",
        "executions that compiled, by execution",
        (
            C("execution", "<u4", "row of `executions`"),
            C("language", "<u4", "string: c, c++, assembler, rust, go, java, .."),
            C("type", "|u1", "1 C, 2 C++, 0 any other language"),
            C("is_child", "|u1", "1 when the driver is in the parent process"),
            C("files.start", "<u8", "what it compiled, in `compilation_files`"),
            C("includes.start", "<u8", "where it searched headers, in `compilation_includes`"),
            C("definitions.start", "<u8", "-D and -U in order, in `compilation_definitions`"),
            C("headers.start", "<u8", "-include, in `compilation_headers`"),
            C("objects.start", "<u8", "what it made, in `compilation_objects`"),
        ),
    ),
    Table("compilation_files", "sources", (C("string", "<u4", "absolute path"),)),
    Table("compilation_includes", "directories", (C("string", "<u4", "absolute path"),)),
    Table(
        "compilation_definitions",
        "of the preprocessor, from the command line",
        (
            C("name", "<u4", "string"),
            C("value", "<u4", "string; of -D NAME it is 1, of -U it is empty"),
            C("is_undef", "|u1", "1 for -U"),
        ),
    ),
    Table("compilation_headers", "files", (C("string", "<u4", "absolute path"),)),
    Table("compilation_objects", "files", (C("path", "<u4", "row of `paths`"),)),
    Table(
        "unread_response_files",
        "response files that are gone, by the command that is only partly known without them",
        (
            C("execution", "<u4", "row of `executions`"),
            C("string", "<u4", "absolute path"),
        ),
    ),
    Table(
        "wrappers",
        "one row for each execution",
        (C("execution", "<i4", "row of the wrapping shell's execution, NONE when there is none"),),
    ),
    Table(
        "targets",
        "what make and ninja worked on, by the execution of make or ninja",
        (
            C("tool", "<u4", "row of `executions`: the make or ninja"),
            C("kind", "|u1", "0 outputs of an edge of ninja, 1 the only goal of a command line"),
            C("outer", "<i4", "row of `targets` that the tool itself belongs to, NONE without"),
            C("names.start", "<u8", "its names in `target_names`"),
        ),
    ),
    Table("target_names", "as make or ninja has them", (C("string", "<u4", "a file or goal"),)),
    Table(
        "execution_targets",
        "one row for each execution",
        (C("target", "<i4", "row of `targets`, NONE: not known"),),
    ),
    Table("patterns", "command patterns, by bit", (C("string", "<u4", "the pattern"),)),
    Table(
        "pattern_bits",
        "ceil(patterns / 8) bytes for each execution, one after the other",
        (C("bits", "|u1", "pattern i is bit 0x80 >> i % 8 of byte i / 8"),),
    ),
    *GRAPH,
)

#: every column as (table, column, dtype), in the order of `libetrace.image.schema`
COLUMNS: tuple[tuple[str, str, str], ...] = tuple(
    (table.name, c.name, c.dtype) for table in TABLES + PRODUCTS for c in table.columns
)
