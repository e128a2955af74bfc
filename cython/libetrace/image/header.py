# SPDX-License-Identifier: Apache-2.0
"""The head and the header of an image -> where its columns lie, checked against the schema.

The one place that compares what a file says of itself with the schema and with its length: nothing
of a header is believed. Only the tables and columns of schema.json are accepted, with their dtypes;
after that rows, lengths and offsets are right. Units and meanings are those of the schema,
whatever the file says. What columns hold (row numbers, offsets, kinds) is checked by
libetrace.image.columns.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from libetrace.core.errors import Error

MAGIC = b"ETRACEDB"
ALIGNMENT = 64
HEAD = struct.Struct("<8sIIQ")  # magic, schema, bytes of the header, bytes of the file
HINT = "make it again: cas cache"
Code = Literal["Q", "q", "I", "i", "H", "h", "B", "b"]
#: dtype -> (struct code, bytes of an element)
DTYPES: dict[str, tuple[Code, int]] = {
    "<u8": ("Q", 8),
    "<i8": ("q", 8),
    "<u4": ("I", 4),
    "<i4": ("i", 4),
    "<u2": ("H", 2),
    "<i2": ("h", 2),
    "|u1": ("B", 1),
    "|i1": ("b", 1),
}
#: since when the graph in an image follows docs/dependencies.md
GRAPH_SCHEMA = 9
#: a longer header is damage: `cas parse` writes some kB
MAX_HEADER_BYTES = 1 << 24
#: the only column whose length is not the number of rows: `start` divides it
BYTES = "bytes"
#: types of the attributes that the code reads, and of their elements
ATTRIBUTES: dict[str, tuple[type | tuple[type, ...], type | tuple[type, ...]]] = {
    "source_root": (str, object),
    "path_style": (str, object),
    "version": (str, object),
    "said": (dict, str),
    "sources": (dict, (dict, type(None))),
    "traces": (dict, (dict, type(None))),
    "parse_problems": (list, str),
    "unknown_keys": (int, object),
    "tells_last": (bool, object),
    "phases": ((dict, type(None)), str),
}


class ColumnSchema(NamedTuple):
    """A column; `of`: the table that it has rows of, or how many kinds it has."""

    dtype: str
    unit: str
    meaning: str
    of: str | int | None


class TableSchema(NamedTuple):
    """A table; `group`: exists with those of the group; `rows`: has as many rows as that table."""

    is_product: bool
    group: str
    rows: str
    columns: Mapping[str, ColumnSchema]


def _load_schema() -> tuple[int, int, Mapping[str, TableSchema]]:
    raw = json.loads(Path(__file__).with_name("schema.json").read_bytes())
    tables = {
        table["name"]: TableSchema(
            table["is_product"],
            table["group"],
            table["rows"],
            {name: ColumnSchema(*column) for name, column in table["columns"].items()},
        )
        for table in raw["tables"]
    }
    return raw["version"], raw["oldest"], tables


#: readers refuse newer schemas and older ones; every table of the schema by name
SCHEMA_VERSION, OLDEST_SCHEMA, SCHEMA = _load_schema()


class ImageError(Error):
    """A file is not an image, is damaged, or is of a newer schema. `hint` says what to do."""

    def __init__(self, message: str, hint: str = HINT) -> None:
        super().__init__(message, hint)


class ColumnInfo(NamedTuple):
    """A column: offset from the start of the data, length in elements."""

    dtype: str
    unit: str
    meaning: str
    offset: int
    length: int


class TableInfo(NamedTuple):
    """A table and its columns, in the order of the file."""

    name: str
    n_rows: int
    columns: Mapping[str, ColumnInfo]


class Header(NamedTuple):
    """The header of an image; `start` is the offset of its data."""

    schema: int
    attributes: Mapping[str, Any]
    tables: Mapping[str, TableInfo]
    start: int


def group_names(group: str) -> tuple[str, ...]:
    """Return the names of the tables that exist together or not at all."""
    return tuple(name for name, table in SCHEMA.items() if table.group == group)


def align(offset: int) -> int:
    """Return the first place at or after an offset where a column may begin."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def has_one_more(column: str) -> bool:
    """Return whether a column has one element more than its table has rows."""
    return column == "start" or column.endswith(".start")


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ImageError(f"damaged header: {value!r} is not a natural number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ImageError(f"damaged header: {value!r} is not a name")
    return value


def _items(value: Any, key: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list in the header."""
    items = value.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ImageError(f"damaged header: {key} is not a list of objects")
    return items


# ---- tables ----


def _read_column(raw: Mapping[str, Any], table: str, known: TableSchema) -> tuple[str, ColumnInfo]:
    name = _text(raw.get("name"))
    if name not in known.columns:
        raise ImageError(f"{table} has an unknown column {name!r}")
    dtype, unit, meaning, _ = known.columns[name]
    if raw.get("dtype") != dtype:
        raise ImageError(f"column {table}.{name} is not {dtype}")
    place = _natural(raw.get("offset")), _natural(raw.get("length"))
    return name, ColumnInfo(dtype, unit, meaning, *place)


def _check_place(name: str, info: ColumnInfo, n_rows: int, n_data: int) -> None:
    """Compare a column with the rows of its table and with the data that the file has."""
    n_bytes = info.length * DTYPES[info.dtype][1]
    if info.offset % ALIGNMENT or info.offset + n_bytes > n_data:
        raise ImageError(f"column {name} lies outside the file")
    column = name.partition(".")[2]
    if column != BYTES and info.length != n_rows + has_one_more(column):
        raise ImageError(f"column {name} has {info.length} elements for {n_rows} rows")


def _read_table(raw: Mapping[str, Any], n_data: int) -> TableInfo:
    name, n_rows = _text(raw.get("name")), _natural(raw.get("rows"))
    known = SCHEMA.get(name)
    if known is None:
        raise ImageError(f"unknown table {name!r}")
    columns: dict[str, ColumnInfo] = {}
    for each in _items(raw, "columns"):
        column, info = _read_column(each, name, known)
        if column in columns:
            raise ImageError(f"{name} has two columns {column}")
        _check_place(f"{name}.{column}", info, n_rows, n_data)
        columns[column] = info
    for column in known.columns:
        if column not in columns:
            raise ImageError(f"{name} has no column {column}")
    return TableInfo(name, n_rows, columns)


def _read_tables(raw: Mapping[str, Any], n_data: int) -> Mapping[str, TableInfo]:
    tables: dict[str, TableInfo] = {}
    for each in _items(raw, "tables"):
        table = _read_table(each, n_data)
        if table.name in tables:
            raise ImageError(f"two tables {table.name}")
        tables[table.name] = table
    _check_missing(tables)
    return tables


def _check_missing(tables: dict[str, TableInfo]) -> None:
    there = {SCHEMA[name].group: name for name in reversed(tables)}
    for name, known in SCHEMA.items():
        if name in tables:
            continue
        if not known.is_product:
            raise ImageError(f"no table {name}")
        if known.group and known.group in there:
            raise ImageError(f"table {name} is missing beside {there[known.group]}")


# ---- attributes ----


def _read_attributes(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes; those that the code reads have the right types."""
    attributes = raw.get("attributes")
    if not isinstance(attributes, dict):
        raise ImageError("damaged header: no attributes")
    for name, (wanted, held) in ATTRIBUTES.items():
        value = attributes.get(name, ATTRIBUTES)
        if value is ATTRIBUTES:
            continue
        inner = value.values() if isinstance(value, dict) else value
        if not isinstance(value, wanted) or (
            isinstance(value, (dict, list)) and not all(isinstance(each, held) for each in inner)
        ):
            raise ImageError(f"damaged header: attribute {name} is {value!r:.40}")
    try:
        json.dumps(attributes, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ImageError(f"damaged header: attributes: {error}") from error
    return attributes


# ---- all of it ----


def _read_head(data: memoryview) -> tuple[int, int]:
    """Return the schema and the bytes of the header."""
    if len(data) < HEAD.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise ImageError("not a database image")
    _, schema, n_header, n_file = HEAD.unpack_from(data)
    if schema > SCHEMA_VERSION:
        raise ImageError(
            f"schema {schema}, and this etrace reads up to {SCHEMA_VERSION}",
            "use a newer etrace, or make the image again: cas cache",
        )
    if schema < OLDEST_SCHEMA:
        raise ImageError(f"schema {schema} is older than {OLDEST_SCHEMA}")
    if n_header > MAX_HEADER_BYTES:
        raise ImageError(f"a header of {n_header} bytes: at most {MAX_HEADER_BYTES} are allowed")
    if n_file != len(data) or HEAD.size + n_header > n_file:
        raise ImageError(f"{len(data)} bytes instead of {n_file}: is it cut off?")
    return schema, n_header


def _leave_out_graph(raw: dict[str, Any], schema: int) -> None:
    """Leave out a graph that was made by older rules: queries make their own."""
    tables = raw.get("tables")
    if schema < GRAPH_SCHEMA and isinstance(tables, list):
        old = group_names("graph")
        raw["tables"] = [
            table for table in tables if not isinstance(table, dict) or table.get("name") not in old
        ]


def _read(data: memoryview) -> Header:
    schema, n_header = _read_head(data)
    try:
        raw = json.loads(bytes(data[HEAD.size : HEAD.size + n_header]))
    except (ValueError, RecursionError) as error:
        raise ImageError(f"byte {HEAD.size}: damaged header: {error}") from error
    if not isinstance(raw, dict):
        raise ImageError(f"byte {HEAD.size}: damaged header: not an object")
    _leave_out_graph(raw, schema)
    start = align(HEAD.size + n_header)
    return Header(schema, _read_attributes(raw), _read_tables(raw, len(data) - start), start)


def read_header(data: memoryview, path: Path) -> Header:
    """Return the header of an image. ImageError names the file, and the table or column."""
    try:
        return _read(data)
    except ImageError as error:
        raise ImageError(f"{path}: {error.message}", error.hint) from error.__cause__
