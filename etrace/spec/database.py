# SPDX-License-Identifier: Apache-2.0
"""database.toml as frozen values, and the constants that columns hold.

The table itself is read only to render what is made of it. Programs take the schema from
`libetrace.image.header`, which reads the rendered schema.json.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, NamedTuple

from etrace.errors import SpecError

#: no row, no status, not known
NONE = -1
#: bits of the columns `mode`, 0emmmmaa: how a file was opened, its type, whether it was there
ACCESS, TYPE, EXISTS = 0x03, 0x3C, 0x40
#: a mode -> 1 when the file could be written
IS_WRITE = bytes(mode & ACCESS != 0 for mode in range(256))
#: the bits of a type are those of st_mode, shifted right by so many
TYPE_SHIFT = 10
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
_DTYPES = {"u1": "|u1", "ns": "<i8", "bytes": "<i8", "row": "<u4", "row?": "<i4", "rows": "<u8"}


def file_type(mode: int) -> int:
    """Return the type of a file as `stat.S_IFMT` does, 0 when it is not known."""
    return (mode & TYPE) << TYPE_SHIFT


class Column(NamedTuple):
    """`dtype` as NumPy writes it; `of`: the table that it has rows of, or how many kinds it has."""

    name: str
    dtype: str
    unit: str
    meaning: str
    of: str | int | None

    @property
    def symbol(self) -> str:
        """Its name without a dot, for names in Cython."""
        return self.name.replace(".", "_")

    @property
    def struct(self) -> str:
        """The struct of image/columns.pxd that holds it: S8 for <i8."""
        return self.dtype[1:].upper().replace("I", "S")


class Table(NamedTuple):
    """Columns of one length, except `start` and `X.start`, which have one element more."""

    name: str
    meaning: str
    is_product: bool
    group: str
    rows: str
    columns: tuple[Column, ...]


class Schema(NamedTuple):
    """All tables, products last; readers refuse versions above `version` and below `oldest`."""

    version: int
    oldest: int
    tables: tuple[Table, ...]


def _column(table: str, name: str, type_: str, meaning: str = "") -> Column:
    kind, _, of = type_.partition(" ")
    unit = kind if kind in ("ns", "bytes") else ""
    if kind in ("row", "row?"):
        row = "string" if of == "strings" else f"row of `{of}`"
        none = " or NONE" if kind == "row?" and not meaning else ""
        meaning = f"{row}{none}{meaning and ': '}{meaning}"
    elif kind == "rows":
        meaning = f"{meaning}{meaning and ', '}in `{of}`"
    elif kind == "offsets":
        kind, of = "rows", table
    elif kind == "u1" and of:
        return Column(name, _DTYPES[kind], unit, meaning, int(of.removeprefix("< ")))
    return Column(name, _DTYPES.get(kind, f"<{kind}"), unit, meaning, of or None)


def _table(name: str, is_product: bool, raw: dict[str, Any]) -> Table:
    columns = tuple(
        _column(name, key, *value) for key, value in raw.items() if isinstance(value, list)
    )
    return Table(
        name, raw["meaning"], is_product, raw.get("group", ""), raw.get("rows", ""), columns
    )


def parse(text: str) -> Schema:
    """Turn the text of a database.toml into a `Schema`. SpecError names a column of no table."""
    import tomllib  # noqa: PLC0415  queries need only the constants

    raw = tomllib.loads(text)
    tables = [_table(name, False, table) for name, table in raw["table"].items()]
    tables += [_table(name, True, table) for name, table in raw["product"].items()]
    names = {table.name for table in tables}
    for table in tables:
        for column in table.columns:
            if isinstance(column.of, str) and column.of not in names:
                raise SpecError(f"database.toml: {table.name}.{column.name}: no table {column.of}")
    return Schema(raw["version"], raw["oldest"], tuple(tables))


def load() -> Schema:
    """Read the database.toml of this package."""
    return parse(Path(__file__).with_name("database.toml").read_text())
