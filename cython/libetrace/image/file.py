# SPDX-License-Identifier: Apache-2.0
"""The database image `.nfsdb.img`: columns in one file, mapped, not read (docs/image.md).

A file is the magic, the schema version, the length of a JSON header, the header, and then the
columns, each at a multiple of 64 bytes from the start of the data. The header names every table and
column with dtype, unit, offset and length, so a reader needs only this file. All numbers are
little endian.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import mmap
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from libetrace.core.folders import PRIVATE, ROOT, give_away, may_own, narrow, opened_folder
from libetrace.core.regular_file import may_be_mapped, open_regular
from libetrace.image.header import (
    DTYPES,
    HEAD,
    MAGIC,
    SCHEMA,
    SCHEMA_VERSION,
    ColumnInfo,
    Header,
    ImageError,
    TableInfo,
    align,
    has_one_more,
    read_header,
)

#: bytes that a header has to spare for attributes that are made of the columns
ROOM = 8192
READ_HINT = "another user may change it, so it is not mapped: query a copy of it"


class Table:
    """A table of an open image: one-dimensional views by column, without a copy.

    A column `X.start` has one element more than the table has rows: row i owns the elements
    [start[i], start[i + 1]) of the table that its meaning names. Any consumer of the Arrow
    PyCapsule interface (pyarrow, Polars, DuckDB) takes a table without a copy (image.arrow).
    """

    __slots__ = ("columns", "infos", "n_rows", "name")

    def __init__(
        self,
        name: str,
        n_rows: int,
        columns: Mapping[str, memoryview],
        infos: Mapping[str, ColumnInfo],
    ) -> None:
        self.name, self.n_rows, self.columns, self.infos = name, n_rows, columns, infos

    def __getitem__(self, column: str) -> memoryview:
        return self.columns[column]

    def __arrow_c_schema__(self) -> object:
        from libetrace.image import arrow  # noqa: PLC0415  most never need it

        return arrow.schema_capsule(self)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        from libetrace.image import arrow  # noqa: PLC0415

        return arrow.array_capsules(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from libetrace.image import arrow  # noqa: PLC0415

        return arrow.stream_capsule(self)

    def span(self, column: str, row: int) -> range:
        """Return the rows that `row` owns through the column `X.start`."""
        start = self.columns[column]
        return range(start[row], start[row + 1])


class Image:
    """An open image. Views stay valid until it is closed; a replaced file is not noticed."""

    __slots__ = ("_map", "attributes", "inode", "path", "schema", "tables")

    def __init__(
        self, path: Path, header: Header, tables: Mapping[str, Table], mapped: mmap.mmap, inode: int
    ) -> None:
        self.path, self.tables, self._map = path, tables, mapped
        self.schema, self.attributes = header.schema, header.attributes
        self.inode = inode  # of the file: whether it was replaced since

    def __getitem__(self, table: str) -> Table:
        return self.tables[table]

    @property
    def n_strings(self) -> int:
        """How many different strings there are, those of products not counted."""
        return self.tables["strings"].n_rows

    def string(self, row: int) -> bytes:
        """Return the bytes of a string; strings are sorted as bytes, those of products follow."""
        strings = self.tables["strings"]
        if row >= strings.n_rows:
            row -= strings.n_rows
            strings = self.tables["added_strings"]
        start = strings.columns["start"]
        return bytes(strings.columns["bytes"][start[row] : start[row + 1]])

    def find_string(self, text: bytes) -> int:
        """Return the row of a string, -1 when the image does not hold it: log n comparisons."""
        row = bisect.bisect_left(range(self.n_strings), text, key=self.string)
        return row if row < self.n_strings and self.string(row) == text else -1

    def path_string(self, path: int) -> bytes:
        """Return the bytes of a row of `paths`."""
        return self.string(self.tables["paths"].columns["string"][path])

    def find_path(self, path: bytes) -> int:
        """Return the row in `paths` of a path, -1 when nothing opened it."""
        string = self.find_string(path)
        if string < 0:
            return -1
        strings = self.tables["paths"].columns["string"]
        row = bisect.bisect_left(strings, string)  # sorted by string, and strings as bytes
        return row if row < len(strings) and strings[row] == string else -1

    def close(self) -> None:
        """Give the mapping back; all views must be released before."""
        self.tables = {}
        with contextlib.suppress(BufferError):
            self._map.close()


# ---- reading ----


def _load(stream: Any, path: Path, is_mapped: bool) -> mmap.mmap:
    n_bytes = os.fstat(stream.fileno()).st_size
    if n_bytes < HEAD.size:
        raise ImageError(f"{path}: not a database image")
    if is_mapped and may_be_mapped(stream.fileno()):
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        read = mmap.mmap(-1, n_bytes)
    except OSError as error:
        raise ImageError(f"{path}: no memory for {n_bytes} bytes", READ_HINT) from error
    if stream.readinto(read) != n_bytes:
        raise ImageError(f"{path}: was truncated while it was read")
    return read


def _table(info: TableInfo, data: memoryview) -> Table:
    columns = {}
    for name, column in info.columns.items():
        code, n_bytes = DTYPES[column.dtype]
        columns[name] = data[column.offset : column.offset + column.length * n_bytes].cast(code)
    return Table(info.name, info.n_rows, columns, info.columns)


def open_image(path: str | os.PathLike[str], *, is_mapped: bool = True) -> Image:
    """Map an image, or read it. ImageError: not an image, damaged or of another schema; OSError.

    Without `is_mapped`, or when others may truncate the file (core.ownership), it is read.
    """
    path = Path(path)
    with open(open_regular(path), "rb") as stream:  # noqa: PTH123  a descriptor
        return _open(stream, path, is_mapped=is_mapped)


def _open(stream: BinaryIO, path: Path, *, is_mapped: bool = True) -> Image:
    stream.seek(0)
    inode = os.fstat(stream.fileno()).st_ino
    mapped = _load(stream, path, is_mapped)
    data = memoryview(mapped).toreadonly()
    header = read_header(data, path)
    tables = {name: _table(info, data[header.start :]) for name, info in header.tables.items()}
    return Image(path, header, tables, mapped, inode)


# ---- writing ----

#: what makes the attributes of an image of its columns
Describe = Callable[[Image], Mapping[str, Any]]


class FilePiece(NamedTuple):
    """A piece of a column in a file."""

    file: Any
    offset: int
    nbytes: int

    def read(self) -> bytes:
        """Return its bytes. OSError."""
        return os.pread(self.file.fileno(), self.nbytes, self.offset)

    def write_to(self, stream: BinaryIO) -> None:
        """Append it to a stream, without a copy in memory. OSError."""
        stream.flush()
        done = 0
        while done < self.nbytes:
            source, target = self.file.fileno(), stream.fileno()
            done += os.sendfile(target, source, self.offset + done, self.nbytes - done)
        stream.seek(0, os.SEEK_CUR)


class NewColumn(NamedTuple):
    """A column to write: the bytes of `dtype` elements.

    `data` is an object with the buffer protocol, or a list of such and of FilePiece: the column's
    pieces in order.
    """

    name: str
    dtype: str
    data: Any
    unit: str = ""
    meaning: str = ""

    @property
    def n_bytes(self) -> int:
        """Bytes of the whole column."""
        return sum(
            piece.nbytes if isinstance(piece, FilePiece) else memoryview(piece).nbytes
            for piece in self.pieces
        )

    @property
    def pieces(self) -> list[Any]:
        """The buffers that hold the column."""
        return self.data if isinstance(self.data, list) else [self.data]


class NewTable(NamedTuple):
    """A table to write."""

    name: str
    n_rows: int
    columns: Sequence[NewColumn]


def _describe(tables: Sequence[NewTable]) -> tuple[list[dict[str, Any]], int]:
    out, offset = [], 0
    for table in tables:
        columns = []
        for c in table.columns:
            length, rest = divmod(c.n_bytes, DTYPES[c.dtype][1])
            if rest:
                raise ValueError(f"{table.name}.{c.name}: {c.n_bytes} bytes are not {c.dtype}")
            columns.append(
                {
                    "name": c.name,
                    "dtype": c.dtype,
                    "unit": c.unit,
                    "meaning": c.meaning,
                    "offset": offset,
                    "length": length,
                }
            )
            offset = align(offset + c.n_bytes)
        out.append({"name": table.name, "rows": table.n_rows, "columns": columns})
    return out, offset


def new_table(name: str, given: Iterable[Any]) -> NewTable:
    """Return a table of the schema; `given` are the data of its columns."""
    columns = [
        NewColumn(column, schema.dtype, data, schema.unit, schema.meaning)
        for (column, schema), data in zip(SCHEMA[name].columns.items(), given, strict=True)
    ]
    first = columns[0]
    n_rows = first.n_bytes // DTYPES[first.dtype][1] - has_one_more(first.name)
    return NewTable(name, n_rows, columns)


def new_tables(given: Iterable[Any], products: Collection[str] = ()) -> list[NewTable]:
    """Return the tables whose columns are `given`, in the order of the schema.

    There are columns of all tables; of products only those in `products` become tables.
    """
    data = iter(given)
    made = []
    for name, table in SCHEMA.items():
        columns = [next(data) for _ in table.columns]
        if name in products or not table.is_product:
            made.append(new_table(name, columns))
    return made


def _header(attributes: Mapping[str, Any], tables: Sequence[NewTable]) -> bytes:
    described, _ = _describe(tables)
    return json.dumps({"attributes": dict(attributes), "tables": described}).encode()


def _write_head(stream: BinaryIO, header: bytes, tables: Sequence[NewTable]) -> None:
    _, n_data = _describe(tables)
    start = align(HEAD.size + len(header))
    stream.write(HEAD.pack(MAGIC, SCHEMA_VERSION, len(header), start + n_data))
    stream.write(header)
    stream.write(bytes(start - HEAD.size - len(header)))


def _write_data(stream: BinaryIO, tables: Sequence[NewTable]) -> None:
    for table in tables:
        for column in table.columns:
            for piece in column.pieces:
                if isinstance(piece, FilePiece):
                    piece.write_to(stream)
                elif memoryview(piece).nbytes:
                    stream.write(memoryview(piece).cast("B"))
            stream.write(bytes(align(column.n_bytes) - column.n_bytes))


def _write_all(stream: BinaryIO, header: bytes, tables: Sequence[NewTable]) -> None:
    stream.seek(0)
    _write_head(stream, header, tables)
    _write_data(stream, tables)
    stream.flush()


def _write_described(
    stream: BinaryIO, path: Path, describe: Describe, tables: Sequence[NewTable]
) -> None:
    """Write the columns, then a header with attributes that are made of them."""
    first = _header({}, tables)
    first = first.ljust(len(first) + ROOM)  # JSON may end with blanks
    _write_all(stream, first, tables)
    header = _header(describe(_open(stream, path)), tables)
    if len(header) > len(first):
        _write_all(stream, header, tables)
        return
    stream.seek(0)
    _write_head(stream, header.ljust(len(first)), tables)


def image_in_memory(tables: Sequence[NewTable]) -> Image:
    """Return an image without a file."""
    with open(os.memfd_create("image"), "w+b") as stream:  # noqa: PTH123  a descriptor
        os.fchmod(stream.fileno(), PRIVATE)  # so that it may be mapped
        _write_all(stream, _header({}, tables), tables)
        return _open(stream, Path("an image in memory"))


def _take_over(fd: int, status: os.stat_result, models: Sequence[Path]) -> None:
    """Give a new file the rights of another one, and its owner when root writes it. OSError.

    A file derived from another one must not be readable by more users, and not belong to a user who
    cannot read what it is made of.
    """
    if os.geteuid() == ROOT:
        if not may_own(status.st_uid, models):
            return
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, status.st_mode & 0o666)


@contextlib.contextmanager
def replacing(
    path: Path, model: Path | None = None, *, is_new: bool = False, models: Sequence[Path] = ()
) -> Iterator[BinaryIO]:
    """Yield a stream; the file gets the name `path` when the block succeeds. OSError.

    It has the rights, and when root writes it the owner, of `model`, by default of the file that it
    replaces; with `is_new` those of any new file. A user who cannot read all of `models` does not
    get it. A link of that name is replaced, and no link of another user is followed on the way.
    """
    name = path.name
    temporary = f".{name}.{os.urandom(4).hex()}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened_folder(path.parent, file=path) as folder:
        try:  # Ctrl-C may come as soon as the file is there
            try:
                fd = os.open(temporary, flags, 0o666, dir_fd=folder)
            except OSError as error:  # the user does not know the temporary name
                raise OSError(error.errno, error.strerror, os.fspath(path)) from error
            with open(fd, "w+b") as stream:  # noqa: PTH123  a descriptor
                if not is_new:
                    with contextlib.suppress(FileNotFoundError):
                        found = model.stat() if model else _replaced(name, folder)
                        _take_over(fd, found, models)
                yield stream
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(
                OSError
            ):  # of a read-only file system too: it has no such file
                os.unlink(temporary, dir_fd=folder)


def _replaced(name: str, folder: int) -> os.stat_result:
    """Return the status of the file that is replaced; FileNotFoundError, also for a link."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise FileNotFoundError(name)
    return status


def write_image(
    path: str | os.PathLike[str],
    attributes: Mapping[str, Any] | Describe,
    tables: Sequence[NewTable],
    models: Sequence[Path] = (),
    *,
    is_new: bool = False,
) -> None:
    """Write an image whole: under a temporary name beside `path`, then renamed. OSError.

    `attributes` may be a function of the image: it is called when the columns are in the file, and
    what it raises leaves no file. Nobody can read the image who cannot read all of `models`; what
    root writes belongs to the owner that all of these have. Without models it is as the file that
    it replaces; with `is_new` it is as any new file.
    """
    path = Path(path)
    with replacing(path, next(iter(models), None), is_new=is_new) as stream:
        if models or is_new:
            narrow(stream.fileno(), models)
            give_away(stream.fileno(), models)
        if callable(attributes):
            _write_described(stream, path, attributes, tables)
        else:
            _write_all(stream, _header(attributes, tables), tables)
