# SPDX-License-Identifier: Apache-2.0
r"""Tables of an image -> Arrow tables for people: text instead of row numbers, null for -1.

Needs pyarrow. Numbers stay in the memory of the image. Columns that number strings or paths become
dictionaries of text, with bytes that are not UTF-8 as `\xNN`. Lists of single values (`argv`)
become lists. Other parts are tables that name the row of their owner, `row` there.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from libetrace.depend.execution_facts import find_thread_owners
from libetrace.image.file import Image, Table
from libetrace.image.header import SCHEMA, group_names

from etrace.capture.features import ANALYTICS, install_hint
from etrace.errors import EtraceError
from etrace.nfsdb.hash_records import State
from etrace.spec.database import NONE
from etrace.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

#: columns with rows of strings, by table
STRINGS = {
    "executions": {"cwd"},
    "opens": {"original"},
    "environment": {"string"},
    "mounts": {"source", "target", "type"},
    "compilations": {"language"},
    "compilation_definitions": {"name", "value"},
    "patterns": {"string"},
    "hashes": {"sha256", "git_blob"},
}
#: columns with rows of paths
PATHS = {
    "executions": {"binary"},
    "opens": {"path"},
    "inherited": {"path"},
    "linked": {"path"},
    "hashes": {"path"},
}
#: `X.start` that becomes a list: the table of its values, and whether they are paths
LISTS = {
    ("executions", "argv"): ("arguments", False),
    ("compilations", "files"): ("compilation_files", False),
    ("compilations", "includes"): ("compilation_includes", False),
    ("compilations", "headers"): ("compilation_headers", False),
    ("compilations", "objects"): ("compilation_objects", True),
    ("targets", "names"): ("target_names", False),
}
#: tables whose rows belong to another's: owner, its `X.start`, the name of the added column
OWNED = {
    "children": ("executions", "children", "parent"),
    "pipe_readers": ("executions", "readers", "writer"),
    "cpus": ("executions", "cpus", "execution"),
    "compilation_definitions": ("compilations", "definitions", "compilation"),
}
#: tables whose rows others refer to, and the column with their numbers
NUMBERED = {
    "executions": "row",
    "compilations": "row",
    "targets": "row",
    **{name: "execution" for name, table in SCHEMA.items() if table.rows == "executions"},
}
#: names that SQL reserves, or that are unclear without the owner
RENAMED = {
    ("executions", "binary"): "program",
    ("children", "execution"): "child",
    ("pipe_readers", "execution"): "reader",
    ("wrappers", "execution"): "wrapper",
}
#: other columns in which -1 means that nobody knows
UNKNOWN = {("opens", "until_ns"), ("hashes", "size")}
#: by the bits xx of a mode
ACCESS = ("r", "w", "rw", "rw")
#: parts of other tables
HIDDEN = {
    *("strings", "added_strings", "path_opens", "changes", "pattern_bits"),
    *(values for values, _ in LISTS.values()),
    *group_names("graph"),
}


def load_pyarrow() -> Any:
    """Import pyarrow. EtraceError says how to install it."""
    try:
        import pyarrow  # noqa: PLC0415  an extra
    except ImportError as error:
        raise EtraceError(
            "this needs pyarrow, which is not installed", install_hint(ANALYTICS)
        ) from error
    return pyarrow


class Frames:
    """The Arrow tables of one image, made on demand."""

    def __init__(self, image: Image) -> None:
        self._pa = load_pyarrow()
        self._image = image
        self._strings = self._read_strings()
        self._paths = self._raw("paths").column("string")

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the tables."""
        return (name for name in self._image.tables if name not in HIDDEN)

    def __getitem__(self, name: str) -> Any:
        """Return a table."""
        table = self._image[name]
        if name == "paths":
            path = self._text(self._paths)
            raw = self._raw(name)
            return self._pa.table(
                {"path": path, "mode": raw.column("mode"), "size": raw.column("size")}
            )
        columns: dict[str, Any] = {}
        if name in NUMBERED:
            columns[NUMBERED[name]] = self._numbers(range(table.n_rows))
        if name == "executions":
            columns["thread_of"] = self._without_none(self._numbers(self._threads()))
        if name in OWNED:
            owner, start, title = OWNED[name]
            columns[title] = self._owners(self._image[owner], f"{start}.start")
        return self._pa.table(columns | self._columns(table))

    # ---- strings ----

    def _raw(self, name: str) -> Any:
        return self._pa.record_batch(self._image[name])

    def _read_strings(self) -> Any:
        pa = self._pa
        parts = [
            self._raw(name).column("text")
            for name in ("strings", "added_strings")
            if name in self._image.tables
        ]
        text = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        try:
            return text.cast(pa.large_string())
        except pa.ArrowInvalid:
            shown = [text_of(value) for value in text.to_pylist()]
            return pa.array(shown, pa.large_string())

    def _signed(self, rows: Any) -> Any:
        return rows.view(self._pa.int32()) if rows.type != self._pa.int32() else rows

    def _text(self, rows: Any) -> Any:
        """Return text by rows of strings; -1 is null."""
        rows = self._without_none(self._signed(rows))
        return self._pa.DictionaryArray.from_arrays(rows, self._strings)

    def _path_text(self, rows: Any) -> Any:
        rows = self._without_none(self._signed(rows))
        return self._text(self._paths.take(rows))

    # ---- numbers ----

    def _numbers(self, values: Any) -> Any:
        pa = self._pa
        data = array("i", values)
        return pa.Array.from_buffers(pa.int32(), len(data), [None, pa.py_buffer(data)])

    def _without_none(self, column: Any) -> Any:
        """Return a column with null for -1; itself when there is none."""
        import pyarrow.compute as pc  # noqa: PLC0415

        has = pc.equal(column, NONE)
        if not pc.any(has).as_py():
            return column
        return pc.if_else(has, self._pa.scalar(None, column.type), column)

    def _threads(self) -> Iterator[int]:
        """Yield which execution each begin of a thread belongs to, NONE for all others."""
        for row, owner in enumerate(find_thread_owners(self._image)):
            yield NONE if owner == row else owner

    def _owners(self, owner: Table, start: str) -> Any:
        rows = array("i")
        begin = owner[start]
        for row in range(owner.n_rows):
            rows.extend([row] * (begin[row + 1] - begin[row]))
        return self._numbers(rows)

    # ---- tables ----

    def _list(self, table: Table, column: str) -> Any:
        pa = self._pa
        values_of, are_paths = LISTS[table.name, column]
        rows = self._raw(values_of).column(0)
        values = (self._path_text if are_paths else self._text)(rows).dictionary_decode()
        start = table[f"{column}.start"]
        offsets = pa.Array.from_buffers(pa.int64(), len(start), [None, pa.py_buffer(start)])
        return pa.LargeListArray.from_arrays(offsets, values)

    def _column(self, table: Table, name: str, raw: Any) -> Any:
        if name in STRINGS.get(table.name, ()):
            return self._text(raw.column(name))
        if name in PATHS.get(table.name, ()):
            return self._path_text(raw.column(name))
        column = raw.column(name)
        if table.infos[name].dtype in ("<i2", "<i4") or (table.name, name) in UNKNOWN:
            return self._without_none(column)
        if (table.name, name) == ("hashes", "state"):
            words = [state.word for state in State]
            return self._pa.DictionaryArray.from_arrays(column.cast("int8"), words)
        return column

    def _access(self, modes: Any) -> Any:
        import pyarrow.compute as pc  # noqa: PLC0415

        bits = pc.bit_wise_and(modes, self._pa.scalar(3, self._pa.uint8()))
        return self._pa.DictionaryArray.from_arrays(bits.cast("int8"), list(ACCESS))

    def _columns(self, table: Table) -> dict[str, Any]:
        raw, columns = self._raw(table.name), {}
        for name in table.columns:
            stem = name.removesuffix(".start")
            if stem == name:
                title = RENAMED.get((table.name, name), name)
                columns[title] = self._column(table, name, raw)
            elif (table.name, stem) in LISTS and LISTS[table.name, stem][0] in self._image.tables:
                columns[stem] = self._list(table, stem)
        if table.name in ("opens", "inherited"):
            columns["access"] = self._access(raw.column("mode"))
        return columns
