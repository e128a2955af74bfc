# SPDX-License-Identifier: Apache-2.0
"""Databases: of a small build, the golden Lua build, traces in memory and captured commands.

The small build is hello from two sources and an archive, with all that `cas pp` adds.

    1 make -> 2 gcc -c main.c  -> 3 cc1 main.c (reads main.c util.h)
           -> 4 gcc -c util.c  -> 5 cc1 util.c (reads util.c util.h)
           -> 6 ar rcs libutil.a util.o
           -> 7 gcc -o hello   -> 8 ld -o hello main.o libutil.a

Process n has upid n << 22 | n, as a trace numbers them; each has index 0 and index 1.
"""

from __future__ import annotations

import json
import lzma
import os
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends import capture
from libetrace.convert.json_files import write_json_files
from libetrace.depend.configuration import load
from libetrace.image.file import Image, NewTable, image_in_memory, new_table, new_tables
from libetrace.image.header import DTYPES, SCHEMA
from libetrace.trace.parser import parse
from libetrace.trace.source import Source

from etrace.nfsdb.products import StringTable, rewrite
from etrace.nfsdb.store import open_database
from etrace.parse import parse_trace
from etrace.parse.driver import products
from etrace.postprocess.run import postprocess
from etrace.query.select.selection import Selection

if TYPE_CHECKING:
    from libetrace.trace.parser import Counts

REGULAR, GONE = 0x60, 0
READ, WRITE = 0, 1
ROOT = "/src"
ARCHIVE, EXECUTABLE = 0, 1

MAKE, GCC_MAIN, CC1_MAIN, GCC_UTIL, CC1_UTIL, AR, GCC_LINK, LD = (n << 22 | n for n in range(1, 9))
COMMANDS: dict[int, tuple[int, str, list[str], dict[str, int]]] = {
    # upid: parent, program, argv, opened files
    MAKE: (-1, "/usr/bin/make", ["make", "hello"], {"/src/Makefile": READ}),
    GCC_MAIN: (MAKE, "/usr/bin/gcc", ["gcc", "-DN=1", "-UM", "-c", "main.c"], {}),
    CC1_MAIN: (
        GCC_MAIN, "/usr/lib/cc1", ["cc1", "main.c"],
        {"/src/main.c": READ, "/src/util.h": READ, "/src/main.o": WRITE},
    ),
    GCC_UTIL: (MAKE, "/usr/bin/gcc", ["gcc", "-c", "util.c"], {}),
    CC1_UTIL: (
        GCC_UTIL, "/usr/lib/cc1", ["cc1", "util.c"],
        {"/src/util.c": READ, "/src/util.h": READ, "/src/util.o": WRITE},
    ),
    AR: (
        MAKE, "/usr/bin/ar", ["ar", "rcs", "libutil.a", "util.o"],
        {"/src/util.o": READ, "/src/libutil.a": WRITE},
    ),
    GCC_LINK: (MAKE, "/usr/bin/gcc", ["gcc", "-o", "hello", "main.o", "libutil.a"], {}),
    LD: (
        GCC_LINK, "/usr/bin/ld", ["ld", "-o", "hello", "main.o", "libutil.a"],
        {"/src/main.o": READ, "/src/libutil.a": READ, "/src/hello": WRITE},
    ),
}  # fmt: skip


def _changes(path: str, time_ns: int) -> list[dict[str, Any]]:
    """Return one of each kind, as no build does it."""
    names = {"e": None, "r": "/src/main.o", "l": "/src/util.o", "s": "libutil.a", "g": None}
    return [
        {"k": kind, "t": time_ns} | ({} if name is None or name == path else {"n": name})
        for kind, name in names.items()
    ]


def _entries(*, with_changes: bool = False) -> Iterable[dict[str, Any]]:
    for number, (upid, (parent, program, argv, opened)) in enumerate(COMMANDS.items()):
        start = number * 1000
        children = [{"p": child, "f": 0} for child, c in COMMANDS.items() if c[0] == upid]
        common = {"r": {"p": parent, "x": int(parent > 0)}, "i": [], "u": []}
        shown = COMMANDS[parent][2] if parent > 0 else []
        yield {"p": upid, "x": 0, "s": start, "e": 10, "b": "", "w": "", "v": shown, "c": [],
               "o": [], **common}  # fmt: skip
        yield {
            "p": upid, "x": 1, "s": start + 10, "e": 500, "b": program, "w": ROOT, "v": argv,
            "c": children, "!": 0, **common,
            "o": [
                {"p": path, "b": start + i, "e": start + i + 5, "m": REGULAR | mode, "s": 100 + i}
                | ({"t": _changes(path, start + i)} if with_changes and mode == WRITE else {})
                for i, (path, mode) in enumerate(sorted(opened.items()))
            ],
        }  # fmt: skip


def _table(name: str, rows: Sequence[Sequence[int]], starts: dict[str, list[int]]) -> NewTable:
    """Make a product of rows (values of its columns other than starts) and starts."""
    columns = SCHEMA[name].columns
    plain = [column for column in columns if column not in starts]
    values = {column: [row[i] for row in rows] for i, column in enumerate(plain)} | starts
    return new_table(name, [array(DTYPES[c.dtype][0], values[n]) for n, c in columns.items()])


def _row(image: Image, upid: int) -> int:
    return image["executions"]["upid"].tolist().index(upid) + 1


def _products(image: Image) -> list[NewTable]:
    strings = StringTable(image)

    def path(text: str) -> int:
        return image.find_path(text.encode())

    def string(text: str) -> int:
        return strings.number(text.encode())

    linked = [(_row(image, AR), path("/src/libutil.a"), 0, ARCHIVE),
              (_row(image, LD), path("/src/hello"), 1, EXECUTABLE)]  # fmt: skip
    rows = [(_row(image, upid), string("c"), 1, 0) for upid in (GCC_MAIN, GCC_UTIL)]
    starts = {"files.start": [0, 1, 2], "includes.start": [0, 1, 2], "objects.start": [0, 1, 2],
              "definitions.start": [0, 2, 2], "headers.start": [0, 0, 0]}  # fmt: skip
    tables = [
        _table("linked", linked, {}),
        _table("compilations", rows, starts),
        _table("compilation_files", [(string("/src/main.c"),), (string("/src/util.c"),)], {}),
        _table("compilation_includes", [(string("/usr/include"),)] * 2, {}),
        _table(
            "compilation_definitions",
            [(string("N"), string("1"), 0), (string("M"), string(""), 1)],
            {},
        ),
        _table("compilation_headers", [], {}),
        _table("compilation_objects", [(path("/src/main.o"),), (path("/src/util.o"),)], {}),
    ]
    return [*tables, strings.table()]


def of_compilers() -> Selection:
    """Return what chooses the two executions that compiled."""
    return Selection(pids=[b"%d" % GCC_MAIN, b"%d" % GCC_UTIL])


def write_parsed(directory: Path, *, with_changes: bool = False) -> Path:
    """Write the small build as `etrace_parser` leaves it; returns its directory."""
    directory.mkdir(exist_ok=True)
    (directory / ".nfsdb").write_text(f"INITCWD={ROOT}\n")
    (directory / ".nfsdb.json").write_text(json.dumps(list(_entries(with_changes=with_changes))))
    return directory


def write_database(directory: Path, *, with_changes: bool = False) -> Path:
    """Write the small build with its image and products; returns its directory."""
    return add_products(write_parsed(directory, with_changes=with_changes))


def add_products(directory: Path) -> Path:
    """Add the products of the small build to what `write_parsed` wrote."""
    image = open_database(directory)
    rewrite(image, _products(image))
    return directory


# ---- captured commands, and traces of tests/builders.py


TRACE = ".nfsdb"


def capture_database(folder: Path, command: Sequence[str | Path], cwd: Path) -> Image:
    """Run a command under the first backend; the test fails when it does."""
    captured = capture(command, cwd, trace=folder / TRACE, env=dict(os.environ))
    assert captured.status == 0, captured.stderr.decode()
    return parse_database(folder)


def parse_database(folder: Path) -> Image:
    """Parse the trace in a folder and open its database."""
    parse_trace([folder / TRACE], folder / f"{TRACE}.json")
    return open_database(folder)


def database_of(folder: Path, trace: bytes) -> Image:
    """Write a trace and open its database."""
    (folder / TRACE).write_bytes(trace)
    return parse_database(folder)


# ---- the golden Lua build (tests/golden)


GOLDEN = Path(__file__).resolve().parent / "golden"
LUA_ROOT = "/tmp/b/lua-5.4.4"


def write_lua(directory: Path) -> Path:
    """Write trace, JSON and image of the Lua build; returns the directory.

    Files are taken as gone (no lstat): the same on every machine.
    """
    trace = lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes())
    directory.mkdir(exist_ok=True)
    (directory / ".nfsdb").write_bytes(trace)
    names = (".nfsdb.json", ".nfsdb.env.json", ".nfsdb.mounts.json")
    for name, text in zip(names, parse_bytes(trace), strict=True):
        (directory / name).write_bytes(text)
    open_database(directory)
    return directory


def write_processed_lua(directory: Path) -> Path:
    """Write the Lua build with all that `cas pp` adds; returns the directory.

    Compilers are not asked for their own directories: the same on every machine.
    """
    write_lua(directory)
    image = open_database(directory)
    postprocess(image, load(directory), ("wrappers", "patterns", "linked", "compilations"))
    return directory


# ---- a trace in memory -> the texts of its JSON files, without a database


def tables_of(
    inputs: Sequence[bytes], *, jobs: int = 1, chunk_bytes: int = 0, stat: bool = False
) -> tuple[list[NewTable], Counts]:
    """Parse traces, merged by time; return the tables of the image and what was counted."""
    sources = [Source.from_bytes(content) for content in inputs]
    source = sources[0] if len(sources) == 1 else Source.merge(sources)
    columns, counts = parse(source, jobs=jobs, chunk_bytes=chunk_bytes, stat=stat)
    return new_tables(columns, products(counts)), counts


def texts_of(tables: Sequence[NewTable], *, jobs: int = 1, split: int = 0) -> list[bytes]:
    """Return the texts of entries, environment and mounts."""
    fds = [os.memfd_create(name) for name in ("json", "env", "mounts")]
    write_json_files(image_in_memory(tables), (fds[0], fds[1], fds[2]), jobs=jobs, split=split)
    texts = []
    for fd in fds:
        with open(fd, "rb") as stream:  # noqa: PTH123  a descriptor
            stream.seek(0)
            texts.append(stream.read())
    return texts


def parse_bytes(trace: bytes, *, split: int = 0) -> list[bytes]:
    """Return the texts of entries, environment and mounts of a trace, without asking for files."""
    return texts_of(tables_of([trace])[0], split=split)
