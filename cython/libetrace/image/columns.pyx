# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""An open image, or tables that were made -> pointers to their columns.

The one place that takes addresses: every table of the schema has all of its columns, with their
dtypes, and as many elements as it has rows. That reads no column. What columns hold comes from a
file that may be damaged or hostile: one scan of the maximum of each (about 10 GB/s) makes every
later access safe. Who does not ask for it checks each number that it takes out of a column.
"""
import re

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

from libetrace.image.header import BYTES, DTYPES, SCHEMA, ImageError, has_one_more

from libetrace.image.schema cimport N_COLUMNS

#: graph tables are compared by whoever walks them: libetrace.depend.graph
UNCHECKED = "graph"
#: names of languages; further compilers may add some (etrace/compilers)
LANGUAGE = rb"[\w+#.-]{0,32}"


cdef u64 first_of(U4 rows, u64 row) noexcept nogil:
    cdef u64 low = 0
    cdef u64 high = rows.n
    cdef u64 middle
    while low < high:
        middle = low + (high - low) / 2
        if rows.at[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


# Whether the offsets never go down, begin at 0 and end within `limit`.
cdef bint are_offsets(const u64 *offsets, size_t n, u64 limit) noexcept nogil:
    cdef bint goes_up = n > 0 and offsets[0] == 0
    cdef size_t i
    for i in range(1, n):
        goes_up &= offsets[i] >= offsets[i - 1]
    return goes_up and offsets[n - 1] <= limit


# Whether all numbers are below the limit.
cdef bint are_rows(const u32 *rows, size_t n, u64 limit) noexcept nogil:
    cdef u32 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, rows[i])
    return n == 0 or highest < limit


# The same when NONE is allowed: it becomes 0, row i becomes i + 1.
cdef bint are_rows_or_none(const u32 *rows, size_t n, u64 limit) noexcept nogil:
    cdef u32 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, <u32>(rows[i] + 1))
    return n == 0 or highest <= limit


# Whether all kinds are below the limit.
cdef bint are_kinds(const u8 *kinds, size_t n, u8 limit) noexcept nogil:
    cdef u8 highest = 0
    cdef size_t i
    for i in range(n):
        highest = max(highest, kinds[i])
    return highest < limit


# What each of the structs of columns.pxd holds.
cdef struct Any:
    const void *at
    u64 n


# Columns are in the order of the schema.
cdef Any column_at(Columns columns, int number) noexcept:
    cdef Any out
    memcpy(&out, <const char *>&columns.strings_start + number * sizeof(Any), sizeof(Any))
    return out


cdef void set_column(Columns columns, int number, Any column) noexcept:
    memcpy(<char *>&columns.strings_start + number * sizeof(Any), &column, sizeof(Any))


# Rows of each table that there is; its columns have as many elements, offsets one more.
cdef dict count_rows(Columns columns, path):
    cdef dict n_rows = {}
    cdef Any found
    cdef u64 n
    for number, (table, column, _) in enumerate(COLUMNS):
        found = column_at(columns, number)
        if found.at == NULL or column == BYTES:
            continue
        n = found.n
        if has_one_more(column):
            if not n:
                raise ImageError(f"{path}: damaged: column {table}.{column} is empty")
            n -= 1
        if n_rows.setdefault(table, n) != n:
            raise ImageError(f"{path}: damaged: column {table}.{column} has {n} elements for "
                             f"{n_rows[table]} rows")
    return n_rows


# What is wrong with the values of a column; `limit`: how many rows or kinds it may have.
cdef str find_fault(Any column, str name, str dtype, u64 limit):
    if has_one_more(name):
        return "" if are_offsets(<const u64 *>column.at, column.n, limit) else "offsets"
    if dtype == "<i4":
        return "" if are_rows_or_none(<const u32 *>column.at, column.n, limit) else "row numbers"
    if dtype == "<u4":
        return "" if are_rows(<const u32 *>column.at, column.n, limit) else "row numbers"
    return "" if are_kinds(<const u8 *>column.at, column.n, <u8>limit) else "kinds"


cdef int check(Columns columns, image) except -1:
    n_rows = count_rows(columns, image.path)
    n_strings = n_rows.get("strings", 0) + n_rows.get("added_strings", 0)
    for number, (table, column, schema) in enumerate(COLUMNS):
        if table not in n_rows or schema.of is None or SCHEMA[table].group == UNCHECKED:
            continue
        if column == "start":
            limit = column_at(columns, number + 1).n  # its bytes
        elif schema.of == "strings":
            limit = n_strings
        else:
            limit = n_rows.get(schema.of, schema.of)
        fault = find_fault(column_at(columns, number), column, schema.dtype, limit)
        if fault:
            raise wrong(image, table, column, fault)
    check_languages(columns, image)
    return check_lengths(columns, image, n_rows)


# Strings that are words: they are shown, compared and become names in other files.
cdef int check_languages(Columns columns, image) except -1:
    if columns.compilations_language.at != NULL:
        for string in set(image.tables["compilations"].columns["language"]):
            if not re.fullmatch(LANGUAGE, image.string(string)):
                raise wrong(image, "compilations", "language", "languages")
    return 0


cdef int check_lengths(Columns columns, image, dict n_rows) except -1:
    cdef u64 n_bits = (columns.patterns_string.n + 7) // 8 * columns.executions_upid.n
    for table, schema in SCHEMA.items():
        if schema.rows and schema.group != UNCHECKED \
                and n_rows.get(table, n_rows[schema.rows]) != n_rows[schema.rows]:
            raise wrong(image, table, next(iter(schema.columns)), "rows")
    if columns.pattern_bits_bits.at != NULL and columns.pattern_bits_bits.n != n_bits:
        raise wrong(image, "pattern_bits", "bits", "rows")
    return 0


cdef object wrong(image, str table, str column, str what):
    return ImageError(f"{image.path}: column {table}.{column} holds wrong {what}: damaged?")


#: (table, column, its schema) of every column, by number
COLUMNS = [
    (name, column, schema)
    for name, table in SCHEMA.items()
    for column, schema in table.columns.items()
]
if len(COLUMNS) != N_COLUMNS:
    raise ValueError(f"{len(COLUMNS)} columns, and libetrace was built for {N_COLUMNS}")


cdef class Columns:
    """The columns of an image by table and name, as long as it lives.

    `tables` ({table: {column: buffer}}) replace those of the image. ImageError when a column is
    missing, or has another dtype or length than its table. With `is_checked` also when a row number
    lies outside its table, an offset goes down, or a kind is unknown; without it nothing is read.
    """

    def __init__(self, image, tables=None, *, bint is_checked=True):
        self.fill(image, tables or {}, is_checked)

    cdef int fill(self, image, tables, bint is_checked) except -1:
        self.views = []
        for number, (name, column, schema) in enumerate(COLUMNS):
            table = tables.get(name, image.tables.get(name))
            if table is None:
                continue
            columns = getattr(table, "columns", table)
            if column not in columns:
                raise ImageError(f"{image.path}: no column {name}.{column}")
            self.take(number, image.path, f"{name}.{column}", columns[column], schema.dtype)
        if is_checked:
            check(self, image)
        else:
            count_rows(self, image.path)
        return 0

    cdef int take(self, int number, path, str name, column, str dtype) except -1:
        cdef Py_buffer view
        code, n_bytes = DTYPES[dtype]
        column = memoryview(column)
        if column.format != code or column.itemsize != n_bytes or column.ndim != 1:
            raise ImageError(f"{path}: column {name} is not {dtype}")
        PyObject_GetBuffer(column, &view, PyBUF_SIMPLE)
        set_column(self, number, Any(view.buf, view.len // n_bytes))
        PyBuffer_Release(&view)  # `views` keeps it where it is
        self.views.append(column)
        return 0
