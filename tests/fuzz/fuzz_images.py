# SPDX-License-Identifier: Apache-2.0
"""Crafted database images against every reader: `python tests/fuzz/fuzz_images.py --seconds 60`.

Flipped bits never get past the header. So this takes a sound image apart, changes what its header
says (names, dtypes, rows, places, attributes) and what its columns hold, and puts it together
again with a head that is right. Whoever reads it may refuse it, with a message; a crash, another
exception, a question without an answer in time, or a file outside the directory ends the run with
status 1 and keeps the image.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import databases
import libetrace
from fuzz.crafted import Attempt, fuzz, limited
from libetrace.image.header import DTYPES, HEAD, MAGIC, SCHEMA, SCHEMA_VERSION, align

from etrace.cli.main import cas
from etrace.errors import EtraceError
from etrace.export.parquet import write_parquet
from etrace.nfsdb.products import reopen
from etrace.nfsdb.to_json import pieces

NAMES = ("../../outside", "/tmp/h", "bytes", "start", "x.start", "", "a\0b", "\ud800", "row")
NUMBERS: tuple[Any, ...] = (0, 1, 2, 64, -1, -64, 2**31, 2**32, 2**62, 2**63, 2**64, 10**40)
JUNK: tuple[Any, ...] = (None, True, 1.5, "1", [], {}, [[]], [{}], {"name": 1}, "\udcff", *NUMBERS)
VALUES = (0, 1, 3, 4, 2**7, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1)
#: every question, each to the crafted image alone
QUESTIONS = (
    "ref_files --details --json", "procref --json --details", "binaries", "commands --details",
    "execs --json", "tree", "linked_modules --details", "compiled --json", "faccess", "stat",
    "compilation_info_for --json", "revcomps_for", "deps --path /src/hello", "version",
    "rdeps --path /src/util.h", "moddeps --path /src/hello", "revmoddeps --path /src/util.h",
    "why /src/hello /src/util.h", "linked_modules --with-copies", "unused", "root_pid",
    "source_root", "config",
    "rdeps --with-copies --path /src/util.h", "deps --all /src/libutil.a",
    "deps --commands /src/hello",
    "commands --generate", "commands --generate --makefile", "linker_pattern", "compiler_pattern",
)  # fmt: skip
Header = dict[str, Any]


# ---- apart and together ----


def take_apart(image: bytes) -> tuple[Header, bytearray]:
    """Return the header of an image and its data."""
    _, _, n_header, _ = HEAD.unpack_from(image)
    end = HEAD.size + n_header
    return json.loads(image[HEAD.size : end]), bytearray(image[align(end) :])


def put_together(header: Header, data: bytes | bytearray) -> bytes:
    """Return an image whose head is right, whatever its header says."""
    text = json.dumps(header).encode()
    start = align(HEAD.size + len(text))
    head = HEAD.pack(MAGIC, SCHEMA_VERSION, len(text), start + len(data))
    return (head + text).ljust(start, b"\0") + bytes(data)


def some_table(header: Header, rng: Random) -> Any:
    """Return one of the tables."""
    return rng.choice(header["tables"])


def some_column(header: Header, rng: Random) -> Any:
    """Return one of the columns."""
    return rng.choice(some_table(header, rng)["columns"])


def some_name(rng: Random) -> str:
    """Return a name: of the schema, or one that should not be there."""
    columns = [name for table in SCHEMA.values() for name in table.columns]
    return rng.choice([rng.choice(NAMES), rng.choice(list(SCHEMA)), rng.choice(columns)])


# ---- what is changed ----


def rename_table(header: Header, _data: bytearray, rng: Random) -> None:
    """Give a table another name."""
    some_table(header, rng)["name"] = some_name(rng)


def copy_table(header: Header, _data: bytearray, rng: Random) -> None:
    """Add a table under another name."""
    header["tables"].append({**some_table(header, rng), "name": some_name(rng)})


def drop_table(header: Header, _data: bytearray, rng: Random) -> None:
    """Leave a table out."""
    header["tables"].remove(some_table(header, rng))


def rename_column(header: Header, _data: bytearray, rng: Random) -> None:
    """Give a column another name."""
    some_column(header, rng)["name"] = some_name(rng)


def copy_column(header: Header, _data: bytearray, rng: Random) -> None:
    """Add a column under another name."""
    column = {**some_column(header, rng), "name": some_name(rng)}
    some_table(header, rng)["columns"].append(column)


def drop_column(header: Header, _data: bytearray, rng: Random) -> None:
    """Leave a column out."""
    columns = some_table(header, rng)["columns"]
    columns.pop(rng.randrange(len(columns)))


def change_rows(header: Header, _data: bytearray, rng: Random) -> None:
    """Change how many rows a table says it has, and perhaps the length of its columns."""
    table = some_table(header, rng)
    rows = rng.choice([*NUMBERS, table["rows"] + 1, table["rows"] - 1, *JUNK])
    table["rows"] = rows
    if type(rows) is int and rng.random() < 0.7:
        for column in table["columns"]:
            if column["name"] != "bytes":
                column["length"] = rows + column["name"].endswith("start")


def change_place(header: Header, data: bytearray, rng: Random) -> None:
    """Change dtype, offset or length of a column."""
    column = some_column(header, rng)
    key = rng.choice(["dtype", "offset", "length"])
    if key == "dtype":
        column[key] = rng.choice([*DTYPES, "<f8", "O", *JUNK])
    else:
        column[key] = rng.choice([*JUNK, rng.randrange(0, len(data) + 64, 64), column[key] + 1])


def swap_places(header: Header, _data: bytearray, rng: Random) -> None:
    """Let a column show the data of another one."""
    one, other = some_column(header, rng), some_column(header, rng)
    one["offset"] = other["offset"]


def change_value(header: Header, data: bytearray, rng: Random) -> None:
    """Change an element of a column."""
    column = some_column(header, rng)
    size = DTYPES[column["dtype"]][1]
    if column["length"]:
        at = column["offset"] + size * rng.randrange(column["length"])
        value = rng.choice([*VALUES, rng.randrange(64)]) & ((1 << 8 * size) - 1)
        data[at : at + size] = value.to_bytes(size, "little")


def change_attribute(header: Header, _data: bytearray, rng: Random) -> None:
    """Change an attribute, or what one holds."""
    attributes = header["attributes"]
    name = rng.choice(list(attributes))
    if isinstance(attributes[name], dict) and attributes[name] and rng.random() < 0.5:
        attributes, name = attributes[name], rng.choice(list(attributes[name]))
    attributes[name] = rng.choice(JUNK)


def put_junk(header: Header, _data: bytearray, rng: Random) -> None:
    """Put something of another type at any place of the header."""
    place: Any = header
    key: Any = rng.choice(list(place))
    while rng.random() < 0.7 and isinstance(place[key], (dict, list)) and place[key]:
        place = place[key]
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
    place[key] = rng.choice(JUNK)


CHANGES: tuple[Callable[[Header, bytearray, Random], None], ...] = (
    rename_table, copy_table, drop_table, rename_column, copy_column, drop_column, change_rows,
    change_place, swap_places, change_value, change_attribute, put_junk,
)  # fmt: skip


def craft(image: bytes, rng: Random) -> bytes:
    """Return an image with one to four changes, half of the time with a header that is right."""
    header, data = take_apart(image)
    changes = rng.choice([CHANGES, (change_value,)])
    for _ in range(rng.choice([1, 1, 2, 4])):
        with contextlib.suppress(KeyError, TypeError, AttributeError, IndexError, ValueError):
            rng.choice(changes)(header, data, rng)  # what was changed before may not fit
    return put_together(header, data)


# ---- readers ----


def ask(path: Path) -> None:
    """Ask a database every question; a refusal is an answer."""
    for words in QUESTIONS:
        name, *rest = words.split()
        output = [] if "--generate" in rest else ["-o", os.devnull]
        with (
            limited(f"cas {words}"),
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(SystemExit),
        ):
            cas(["--dbdir", str(path), name, *rest, *output])


def load(path: Path) -> None:
    """Read a database by the library."""
    db = libetrace.nfsdb()
    with contextlib.suppress(libetrace.error):
        db.load(path)
        for table in db.tables.values():
            with contextlib.suppress(ValueError):
                batch: Any = table.__arrow_c_array__()
                del batch
        for entry in db:
            with contextlib.suppress(libetrace.error):
                str((entry.json(), entry.compilation_info, entry.linked_file))


def read(path: Path, out: Path) -> bool:
    """Let everything read an image; whether it was accepted."""
    with limited("libetrace"):
        load(path)
    try:
        with limited("open"):
            image = reopen(path)
    except EtraceError as error:
        if str(path) not in error.message:
            raise AssertionError(error.message) from error
        return False
    with limited("cas export json"):
        b"".join(pieces(image))
    with limited("cas export parquet"):
        write_parquet(image, out)
    ask(path)
    return True


def unexpected(folder: Path) -> Iterator[Path]:
    """Yield files that nobody asked for."""
    tables = {f"{name}.parquet" for name in SCHEMA}
    for path in folder.parent.rglob("*"):
        if path.is_file() and path.parent.name == "out" and path.name in tables:
            continue
        if path.is_file() and path.name not in ("x.img", "sound.img"):
            yield path


def begin(build: Path) -> Attempt:
    """Return what crafts an image and lets everything read it."""
    folder = build / "a/b"
    folder.mkdir(parents=True)
    sound = databases.write_database(build / "a/sound", with_changes=True) / ".nfsdb.img"
    image = sound.read_bytes()
    shutil.rmtree(sound.parent)
    path = folder / "x.img"

    def attempt(rng: Random) -> bool:
        path.write_bytes(craft(image, rng))
        is_accepted = read(path, folder / "out")
        stray = list(unexpected(folder))
        if stray:
            raise AssertionError(f"made {stray[0]}")
        shutil.rmtree(folder / "out", ignore_errors=True)
        return is_accepted

    return attempt


def main() -> int:
    """Command line."""
    return fuzz(__doc__, "images", begin, "a/b/x.img")


if __name__ == "__main__":
    sys.exit(main())
